"""A machine in a nutshell to show restoring on: simulated agents on a tmux server of their own."""
