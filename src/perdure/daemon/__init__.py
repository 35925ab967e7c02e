"""The one process that watches: it owns every stream and every thread, and composes the parts that do the work."""
