"""The command line: one module a command, each a thin front end."""
