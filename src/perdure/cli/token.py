"""`perdure token …`: what lets programs ask the daemon over HTTP."""

from __future__ import annotations

#: Of each verb its module and what it is for.
VERBS = {
    "new": ("token_new", "make a token for a program, and show it this once"),
    "ls": ("token_ls", "list what lets anybody in"),
    "revoke": ("token_revoke", "make a token or a browser's login worth nothing"),
}
