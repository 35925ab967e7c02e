"""Letting agents record their own conversations: merged into their files, recognisable, and taken out without a trace."""
