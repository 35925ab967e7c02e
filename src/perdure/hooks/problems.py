"""Why a file is left as it is."""

from __future__ import annotations


class Unreadable(Exception):
    """The file is not what its agent reads; the text says where and why, to follow the file's name."""


class Unsuitable(Exception):
    """The file cannot be edited without touching what is not ours; the text says why, to follow the file's name."""


class Edited(Exception):
    """What is ours in the file was edited by somebody; the text says what, to follow the file's name."""

    def __init__(self, what: str, way: str) -> None:
        super().__init__(what)
        #: A sentence that says what to do by hand.
        self.way = way
