"""Which skill, or command of the agent's own, was last used in a conversation: by its transcript, not by what was typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from perdure.live.tools import Kind, kind_of

_NAME = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,79}"
_COMMAND = re.compile(rf"<command-name>\s*/?({_NAME})\s*</command-name>")
_BLOCK = re.compile(rf"<skill>(?:(?!</skill>)[\s\S]){{0,2000}}?<name>\s*({_NAME})\s*</name>")
#: `$name` at the beginning of what was said; a variable has capitals, and money digits.
_DOLLAR = re.compile(r"\s*\$([a-z][a-z0-9._-]{1,79})(?=\s|$)")
#: `/name` there; a path has a second slash.
_SLASH = re.compile(r"\s*/([A-Za-z][A-Za-z0-9._:-]{0,79})(?=\s|$)")
_NO_COMMANDS = frozenset(
    "bin boot dev etc home lib lib64 media mnt opt proc root run sbin srv sys tmp usr var users".split()
)
_SEARCHED = 4000


def last_skill(turns: Iterable[Mapping[str, object]]) -> str | None:
    """Return the last skill of the main conversation, in small letters; None when none was used."""
    found = [name for turn in turns if turn.get("agent") is None and (name := skill_in(turn))]
    return found[-1] if found else None


def skill_in(turn: Mapping[str, object]) -> str | None:
    """Return the skill a turn is about, None for an ordinary one."""
    role, text = turn.get("role"), str(turn.get("text") or "")[:_SEARCHED]
    if role == "assistant":
        return _called(turn)
    if role not in ("user", "system"):
        return None
    marked = [*_COMMAND.finditer(text), *_BLOCK.finditer(text)]
    if marked:
        return max(marked, key=lambda match: match.start())[1].lower()
    typed = _DOLLAR.match(text) or _SLASH.match(text)
    return typed[1].lower() if typed and typed[1].lower() not in _NO_COMMANDS else None


def _called(turn: Mapping[str, object]) -> str | None:
    names = str(turn.get("tool") or "").split(", ")
    details = str(turn.get("detail") or "").split("\n")
    for name, detail in reversed([*zip(names, details, strict=False)]):
        if kind_of(name) is Kind.SKILL and re.fullmatch(_NAME, detail):
            return detail.lower()
    return None
