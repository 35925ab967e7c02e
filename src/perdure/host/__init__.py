"""The machine: processes, users, files, places, the clock. Read-only but for the places that are ours."""
