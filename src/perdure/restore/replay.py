"""What is printed in a restored pane before anything runs in it: what was there, and what there is to say. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from perdure.model.text import visible

# Everything a terminal may act on: C0, DEL, and C1, which is ESC and a letter in one character.
_CONTROLS = r"\x00-\x1f\x7f-\x9f"
_SGR = r"\x1b\[[0-9;:]*m"
# A link ends with ST or, as many programs have it, with BEL.
_LINK = rf"\x1b\]8;[^{_CONTROLS}]*(?:\x1b\\|\x07)"
# Other sequences go as a whole, so that their parameters are not left as litter: strings (OSC, DCS, SOS, PM, APC) with
# their end, CSI with its final character, and the short ones.
_OTHER = rf"\x1b[\]PX^_][^{_CONTROLS}]*(?:\x1b\\|\x07)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]+[0-~]|\x1b[0-OQ-WYZ\\`-~]"
_PART = re.compile(rf"(?P<kept>{_SGR}|{_LINK}|[\n\t])|{_OTHER}|[{_CONTROLS}]")
_COLOUR = re.compile(_SGR)
# Where anything but a newline and a tab may begin: a single set of characters is searched for much faster.
_BEGIN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_PLAIN = "\x1b[m\x1b]8;;\x1b\\"
_DIM = "\x1b[2m"
#: How the line between what was and what is begins, also in a pane so narrow that it is cut or wrapped.
_MARK = "── rest"


def replayed(
    scrollback: bytes | None, said: Sequence[str], *, saved_at: datetime, now: datetime, width: int
) -> bytes | None:
    """Return the bytes to print, None when there is nothing to show and nothing to say.

    The text of `scrollback` comes with its colours and links, and with nothing else a terminal would act on. A line
    with both times follows it, then each sentence of `said` on a line of its own; with no scrollback, those alone.
    Times are shown in the zone they are given in.
    """
    shown = _without_blank_end(harmless(scrollback or b""))
    if not shown and not said:
        return None
    parts = [shown + _PLAIN, _DIM + _marker(saved_at, now, width) + "\x1b[m"] if shown else []
    parts += map(visible, said)
    return "".join(part + "\n" for part in parts).encode()


def below_marker(lines: Sequence[str]) -> tuple[str, ...]:
    """Return what a pane shows of its own: without what was replayed, as far as that has not scrolled away."""
    marks = [at for at, line in enumerate(lines) if line.startswith(_MARK)]
    return tuple(lines[marks[-1] + 1 :] if marks else lines)


def harmless(text: bytes) -> str:
    """Return captured text with no control character but newline and tab, and no sequence but colours and links."""
    raw = text.decode(errors="replace")
    if not _BEGIN.search(_COLOUR.sub("", raw)):
        return raw  # nothing but colours, as most of what is ever captured
    kept, at = [], 0
    while begin := _BEGIN.search(raw, at):
        part = _PART.match(raw, begin.start())
        assert part is not None  # any control character is one
        kept += [raw[at : part.start()], part["kept"] or ""]
        at = part.end()
    return "".join(kept) + raw[at:]


def _without_blank_end(text: str) -> str:
    lines = text.split("\n")
    while lines and not _PART.sub("", lines[-1]).strip():
        lines.pop()
    return "\n".join(lines)


def _marker(saved_at: datetime, now: datetime, width: int) -> str:
    same_day = saved_at.date() == now.date()
    saved = f"{saved_at:%H:%M}" if same_day else f"{saved_at:%Y-%m-%d %H:%M}"
    line = f"{_MARK}ored {now:%Y-%m-%d %H:%M} · saved {saved} ──"
    # A marker that wraps is two lines that mark nothing.
    return line if len(line) <= width else line[: max(width, 1)]
