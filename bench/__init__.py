"""What `make bench` measures: a save of real tmux servers, as a multiple of asking tmux for its panes once."""
