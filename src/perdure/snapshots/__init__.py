"""capture -> identify -> save: a machine's panes, kept."""
