"""What an attached control client hears, in its order: replies, what panes print, and notices. Pure.

The order is what makes a screen and what is printed after it fit together. tmux does one line of commands without
reading from any pane in between, and says everything in the order in which it happened: what a pane printed before it was
captured stands before the reply, all the rest behind it.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from perdure.model.text import decode
from perdure.tmux.control import Blocks, Reply

# tmux writes a backslash and everything below a space as three octal digits, and no other byte.
_OCTAL = re.compile(rb"\\[0-7]{3}")
_MEANT = {b"\\%03o" % byte: bytes([byte]) for byte in range(256)}
#: The second to fourth bytes of a character; at most so many of them can stand alone.
_FOLLOWING = re.compile(rb"[\x80-\xbf]{1,3}")


class Output(NamedTuple):
    """What a pane has printed."""

    pane: str
    data: bytes


class Notice(NamedTuple):
    """Anything else tmux says by itself."""

    #: With its percent sign: `%layout-change`.
    kind: str
    rest: str


def octal(data: bytes) -> bytes:
    """Return what a pane printed from how tmux writes it down."""
    return _OCTAL.sub(lambda match: _MEANT.get(match[0], match[0]), data) if b"\\" in data else data


class Heard(Blocks):
    """Everything in a stream of control mode, in one order; take it out of `items`."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[Reply | Output | Notice] = []

    def _outside(self, said: bytes) -> None:
        if said.startswith(b"%output "):
            pane, _, data = said[8:].partition(b" ")
            self.items.append(Output(decode(pane), octal(data)))
        elif said.startswith(b"%extended-output "):
            # `%extended-output %1 AGE … : DATA`; there may be more words before the colon one day.
            words, _, data = said[17:].partition(b" : ")
            self.items.append(Output(decode(words.partition(b" ")[0]), octal(data)))
        else:
            super()._outside(said)
            if said.startswith(b"%") and not said.startswith((b"%begin ", b"%end ", b"%error ")):
                kind, _, rest = decode(said).partition(" ")
                self.items.append(Notice(kind, rest))

    def _end(self, *, failed: bool) -> None:
        super()._end(failed=failed)
        self.items += self.replies
        self.replies = []


class Decoder:
    """Bytes of one pane as text, however they are cut into pieces. What is no text becomes U+FFFD, one for each mistake."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._begins_anew = True

    def feed(self, data: bytes) -> str:
        """Return what is whole by now."""
        if self._begins_anew and data:
            self._begins_anew = False
            # The rest of a character whose beginning was printed before anybody listened: no mistake of the program.
            if cut := _FOLLOWING.match(data):
                data = data[cut.end() :]
        return self._utf8.decode(data)
