"""`perdure chats`: a gateway's chats, for whoever runs the store; each verb is a module of its own."""

from __future__ import annotations

#: Every verb: its module and what it is for.
VERBS = {
    "ls": ("chats_ls", "list chats, the one that was used last first"),
    "show": ("chats_show", "show what was said in a chat, and what is known of it"),
    "search": ("chats_search", "find what was said, in all chats or some"),
    "title": ("chats_title", "print, give or take away a chat's title"),
    "resume": ("chats_resume", "let a chat be the open one of its conversation again"),
    "reset": ("chats_reset", "close an open chat, and begin another in its place"),
    "export": ("chats_export", "write a chat as JSON lines or Markdown"),
    "import": ("chats_import", "take over the chats of earlier programs"),
    "mirror": ("chats_mirror", "write chats as the files earlier programs read"),
    "prune": ("chats_prune", "let go of closed chats that nobody has used for long"),
}
