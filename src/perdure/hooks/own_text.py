"""Files that are all ours."""

from __future__ import annotations

from perdure.hooks import marks
from perdure.hooks.problems import Edited, Unsuitable


def install(text: str | None, wanted: str, *, made_directory: bool) -> str:
    """Return the file's new text, in place of one of ours or of none. Raises Edited, Unsuitable."""
    if text is not None:
        uninstall(text)
        made_directory = bool(marks.made_around(text))
    return marks.stamped(wanted, int(made_directory))


def uninstall(text: str) -> bool:
    """Say of a file of ours whether its directory came with it. Raises Edited, and Unsuitable for somebody else's."""
    if not marks.is_marked(text):
        raise Unsuitable("is not of perdure's making")
    if marks.is_edited(text):
        raise Edited("was edited", "Delete it or give it another name, and try again.")
    return bool(marks.made_around(text))
