"""plan -> restore: what was kept, brought back and verified."""
