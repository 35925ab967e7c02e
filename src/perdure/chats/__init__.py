"""source -> key -> chat -> turns: which conversation a message belongs to, whether it is fresh, and what was said in it."""
