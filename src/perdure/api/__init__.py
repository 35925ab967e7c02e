"""The HTTP interface of `perdure up`: what it shows and does, for programs and for the dashboard. Loaded by the daemon alone."""
