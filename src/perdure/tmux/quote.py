"""Words as tmux's own parser reads them, and text where tmux would expand a format.

Two readers stand between a word and its use. The parser cuts one line of control mode into words: `quote` is for
it. Some commands then expand the word as a format, where `#(…)` runs a program: `literal` is for them. In tmux
3.3a these are `new-session` -s, -n and -c, `new-window` and `split-window` -n and -c, `respawn-pane` -c,
`rename-session`, `rename-window` and `select-pane -T`. The words of a pane's program, `-e`, `set-option` without
-F, `set-environment` and `set-hook` are taken as they are and must not go through `literal`. None of them runs
strftime, so a percent sign is safe in all; `display-message` does, and has no use for foreign text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from perdure.errors import PerdureError
from perdure.model.text import decode, encode

#: The longest word the kernel lets a program have; with a longer one tmux makes a pane that ends at once.
LONGEST_WORD = (1 << 17) - 1
#: The longest command that is sent. tmux itself knows no limit, but a program's words and environment have one.
LONGEST_LINE = 1 << 20

# Everything that means something between double quotes, and every byte beyond printable ASCII, is written as a
# number: tmux takes a raw 0xFF for the end of its input, and a raw newline for the end of the command.
_WRITTEN = tuple(
    bytes([byte]) if 0x20 <= byte <= 0x7E and byte not in b'"\\$~' else b"\\%03o" % byte for byte in range(256)
)
_HASHES = re.compile(r"#+(?!#|\[)")
# How tmux writes what it will not keep raw in the name of a session or a window.
_ESCAPED = re.compile(rb"\\(?:([0-7]{3})|([abfnrtv\\])|(?=\$))")
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b"\\": b"\\"}


# The commands of a restore have most of their words in common, and one of these is long.
@lru_cache(maxsize=64)
def quote(word: str) -> bytes:
    """Return a word so that tmux reads exactly it, whatever is in it, as one argument of a line.

    Raises ValueError for a NUL, which no argument can hold, and PerdureError for a word no program could be given.
    A word with a dash in front is an option wherever options are read: put `--` before it.
    """
    raw = encode(word)
    if b"\0" in raw:
        raise ValueError("no argument can hold a NUL")
    if len(raw) > LONGEST_WORD:
        raise PerdureError(f"A word of {len(raw)} bytes is too long: a program can be given {LONGEST_WORD}.")
    return b'"' + b"".join([_WRITTEN[byte] for byte in raw]) + b'"'


def line(words: Sequence[str]) -> bytes:
    """Return a whole command as one line of control mode, with its newline.

    Raises as `quote` does, and PerdureError when all of it is too long; ValueError without a word, since an empty
    line would detach the client.
    """
    if not words or not words[0]:
        raise ValueError("a command has a name")
    quoted = b" ".join([quote(word) for word in words])
    if len(quoted) > LONGEST_LINE:
        raise PerdureError(f"A command of {len(quoted)} bytes is too long for tmux to start anything with it.")
    return quoted + b"\n"


def literal(text: str) -> str:
    """Return text that is `text` again after tmux expanded it as a format.

    Only `#` means anything there, and is doubled. The trap: before a `[`, where a style might begin, tmux leaves
    any number of them alone.
    """
    return _HASHES.sub(lambda run: run[0] * 2, text)


def unescaped(name: str) -> str:
    r"""Return what to call a session or a window so that tmux then shows it as `name`.

    tmux keeps such a name escaped: `\` as `\\`, `$HOME` as `\$HOME`, an escape character as `\033`. Given back as
    it was read, a name would gain backslashes with every restore.
    """
    return decode(_ESCAPED.sub(_meant, encode(name)))


def _meant(escape: re.Match[bytes]) -> bytes:
    if escape[1]:
        return bytes([int(escape[1], 8) & 0xFF])
    return _LETTERS[escape[2]] if escape[2] else b""
