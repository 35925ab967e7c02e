"""The formats of scripts people already run: read and written exactly, true where the originals guessed."""
