"""The only code that runs tmux, and the only code that reads what it prints."""
