"""Causes in words: the one place that knows what the names by which programs know them mean to people. Pure.

The names themselves stay what they are: other programs go by them.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Who says so, and what stands alone.
_SOURCES: Mapping[str, str] = {
    "registry": "The agent says so itself.",
    "hook": "A hook of the agent's has told it.",
    "screen": "Its screen shows it.",
    "process": "Its processes show it.",
    "transcript": "Its transcript has an answer that nobody has seen.",
    "input": "It was told something through Perdure.",
    "seen": "Somebody has seen it.",
    "silence": "Nothing was heard of it for long.",
    "output": "It printed something again.",
    "conversation": "It has gone on to a conversation in which nothing was said yet.",
    "returned": "It is there again, and was not looked at yet.",
    "initial": "Nothing is known of it yet.",
}
#: Rules that say something else than who says so.
_RULES: Mapping[str, str] = {
    "screen:unread": "Nothing that it shows tells.",
    "process:prompt": "A shell waits for a command.",
    "process:program": "It runs a program.",
    "process:started": "Another program was started in it.",
    "process:stopped": "It was stopped (Ctrl-Z), and does nothing until it is brought back (fg).",
}
#: How runs come, go and end.
_FATES: Mapping[str, str] = {
    "startup_discovery": "It was there when Perdure began to look.",
    "periodic_tmux_reconcile": "Its pane was opened.",
    "api_create": "It was started through Perdure.",
    "shutdown": "It was found while Perdure ended.",
    "process_exit": "Its program has ended.",
    "tmux_reconcile_missing": "Its pane was closed.",
    "startup_missing_tmux": "Its pane was gone when Perdure began to look.",
    "server_died": "Its tmux server has ended.",
    "api_delete": "Somebody wanted it followed no longer; its pane was left as it was.",
}


def because(cause: str) -> str:
    """Return the sentence for a cause of a state, or for a reason for which a run began or is over.

    One that is not known here is named as it is: another version of this program, or an agent's own, may have given it.
    """
    if (known := _RULES.get(cause) or _FATES.get(cause)) is not None:
        return known
    source, _, rule = cause.partition(":")
    if source == "process" and rule:
        return _FATES.get(rule) or f"It runs {rule}."
    return _SOURCES.get(source) or f"The cause is {cause or 'not known'}."
