"""Processes that end together: which end is taken in first. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.daemon.stimuli import Gone, Key, What


def in_turn(ended: Mapping[Key, Gone]) -> list[tuple[Key, Gone]]:
    """Return ends in the order they are to be taken in, whatever order they were told in.

    With a server that fell, all that was in it has ended: that first. One that ended in good order did so after the last
    of its panes: how that ended is known by then.
    """

    def turn(each: tuple[Key, Gone]) -> int:
        key, gone = each
        if key.what is not What.SERVER:
            return 1
        return 0 if fell(gone) else 2

    return sorted(ended.items(), key=turn)


def fell(gone: Gone | None) -> bool:
    """Return whether a server's end is not known to have been in good order; one that is not known to have ended has not."""
    return gone is not None and gone.how.status != 0
