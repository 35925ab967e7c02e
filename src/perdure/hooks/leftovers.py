"""Files that wait to take another's place, and those of them that somebody who was killed has left."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from perdure.host.spool import is_alive


def staged(target: str) -> str:
    """Return the name under which what will be at `target` waits beside it."""
    directory, name = os.path.split(target)
    return os.path.join(directory, f".{name}.perdure-{os.getpid()}")


def remove(target: str) -> None:
    """Delete what processes that have ended left beside `target`. What cannot be deleted stays."""
    directory, name = os.path.split(target)
    plain = re.escape(name)
    # While the file that waits is written it has a longer name, as every file that is written in one step.
    ours = re.compile(
        rf"\.{plain}\.perdure-(?P<waits>[0-9]+)"
        rf"|\.(?:\.{plain}\.perdure-[0-9]+|{plain})\.(?P<writes>[0-9]+)-[0-9a-f]{{8}}\.tmp"
    )
    with suppress(OSError):
        for each in os.listdir(directory):
            found = ours.fullmatch(each)
            if found and not is_alive(int(found["waits"] or found["writes"])):
                with suppress(OSError):
                    os.unlink(os.path.join(directory, each))
