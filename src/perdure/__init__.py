"""Agent sessions that outlive their processes."""

__version__ = "0.1.0"
