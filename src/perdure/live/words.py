"""Words for people, from text that was written by programs: short, on one line, and without secrets."""

from __future__ import annotations

from perdure.model.secrets import redact_text

#: How long a thought should be, and may be.
ASKED, LONGEST = 60, 120


def one_line(text: str | None, limit: int = LONGEST) -> str | None:
    """Return `text` without secrets, on one line of at most `limit` characters; None when nothing is left.

    Secrets go first: a key that was cut off is not known for one any more.
    """
    if not text:
        return None
    shown = redact_text(text[: 16 * limit])
    words = " ".join("".join(char if char.isprintable() else " " for char in shown).split())
    if len(words) > limit:
        words = words[: limit - 1].rstrip() + "…"
    return words or None


def same(one: str | None, other: str | None) -> bool:
    """Return whether two texts say the same, but for blanks and capitals."""
    return (one or "").casefold().split() == (other or "").casefold().split()
