"""How a conversation is begun with something to do at once."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.model.agent import PROMPT
from perdure.model.secrets import redact_text
from perdure.model.text import encode

#: What a command line can carry without coming near the kernel's limit for a word.
_LONGEST = 64 << 10


def opening(words: Sequence[str], form: Sequence[str], prompt: str) -> tuple[tuple[str, ...], bool]:
    """Return the words that start an agent, and whether they ask for the prompt; `form` holds `{prompt}`."""
    if not form or not _is_carried(prompt, alone=PROMPT in form):
        return tuple(words), False
    return (*words, *(word.replace(PROMPT, prompt) for word in form)), True


def _is_carried(prompt: str, *, alone: bool) -> bool:
    """Say whether a command line may hold this.

    With a dash in front it might be an option, and a single word that stands `alone` a subcommand; everybody may read
    the words of a process, so no key may be among them.
    """
    if not prompt.strip() or prompt.startswith("-") or "\0" in prompt or len(encode(prompt)) > _LONGEST:
        return False
    return not (alone and len(prompt.split()) < 2) and redact_text(prompt) == prompt
