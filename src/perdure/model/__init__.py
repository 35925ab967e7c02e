"""The nouns: frozen, keyword-only, no I/O, importing nothing of ours."""
