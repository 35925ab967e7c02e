"""What a job printed, as it is kept on the disk: read from anywhere, with every process dead, whatever is missing.

Bytes are counted from the first the job printed, those that are no longer kept, or never could be, too.
"""

from __future__ import annotations

from msgspec import Struct

from perdure.model.job import Output

#: As much as is given at once when nobody says how much.
LIMIT = 1 << 20


class Lines(Struct, frozen=True, kw_only=True):
    """Some lines of what a job printed."""

    #: The lines as they are, with what ends them.
    output: Output
    #: The number of the first line given; the first the job printed is 0.
    first: int
    #: How many there are in all, with those no longer kept; one that is not ended yet counts.
    total: int


def size(directory: str) -> int:
    """Return how much the job has printed so far, in bytes; 0 when nothing is known of it."""
    raise NotImplementedError


def read(directory: str, start: int, limit: int = LIMIT) -> Output:
    """Return what was printed from `start` on, at most so many bytes.

    What is not kept is skipped and counted in `missing`; then `Output.start` is later than what was asked for. A piece never
    spans something missing: it ends there, and the next one begins behind it. At the end, or behind it, empty.
    """
    raise NotImplementedError


def tail(directory: str, limit: int) -> Output:
    """Return the last so many bytes, fewer where there are fewer in one piece. `missing` is 0."""
    raise NotImplementedError


def lines(directory: str, first: int, limit: int, *, most: int = LIMIT) -> Lines:
    """Return `limit` lines from number `first` on, but no more than `most` bytes; the last `limit` for `first` < 0."""
    raise NotImplementedError


def text_of(output: Output, *, is_last: bool) -> tuple[str, int]:
    """Return a piece as text, and where the text that follows it begins.

    A character whose last bytes are not there yet is left for the next piece, unless this is the last one; one whose
    first bytes were cut off in front is left out. What is no UTF-8 becomes U+FFFD.
    """
    raise NotImplementedError
