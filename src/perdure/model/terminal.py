"""What somebody is shown who watches a pane: the screen as it is, then what is printed."""

from __future__ import annotations

from msgspec import Struct


class Screen(Struct, frozen=True, kw_only=True):
    """All that a pane shows. It takes the place of whatever was shown before."""

    cols: int
    rows: int
    #: Column and line of the cursor, from 0.
    cursor: tuple[int, int]
    title: str
    #: Whether its program has the whole screen to itself.
    alternate: bool
    #: What makes an empty terminal of that size show it: colours, modes and the cursor's place included.
    text: str


class Printed(Struct, frozen=True, kw_only=True):
    """What was printed since, as the program printed it."""

    text: str


class Resized(Struct, frozen=True, kw_only=True):
    """The pane has another size; a `Screen` follows."""

    cols: int
    rows: int


class Sized(Struct, frozen=True, kw_only=True):
    """Whether the pane has the size that whoever is shown this has given it; not any more when another has given it one."""

    taken: bool


class Closed(Struct, frozen=True, kw_only=True):
    """There is nothing more to be seen; the last that is told."""

    #: One sentence without its full stop.
    why: str


Frame = Screen | Printed | Resized | Sized | Closed
