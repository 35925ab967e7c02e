"""Commands that are refused where somebody else is than was meant: put first in a line, nothing behind them is done then. Pure.

Between a look and a command anybody may come: another server on the same socket, whose panes have the same numbers, or
another program in the same pane. So tmux itself compares, in the same breath.
"""

from __future__ import annotations

# No command of tmux's: a line that comes to it ends there.
_OTHER_SERVER = "perdure-other-server"
_OTHER_PROGRAM = "perdure-other-program"


def only_on(server: int, since: int | None) -> tuple[str, ...]:
    """Return what is refused by every server but this process of it; `since` is its `start_time`, None where any will do."""
    asked, wanted = ("#{pid}", f"{server}") if since is None else ("#{pid} #{start_time}", f"{server} {since}")
    return ("if-shell", "-F", f"#{{!=:{asked},{wanted}}}", _OTHER_SERVER)


def only_with(pane: str, first: str) -> tuple[str, ...]:
    """Return what is refused when anything else was started in a pane than this process."""
    return ("if-shell", "-F", "-t", pane, f"#{{!=:#{{pane_pid}},{first}}}", _OTHER_PROGRAM)


def is_other_program(complaint: str) -> bool:
    """Return whether tmux refused for `only_with`."""
    return _OTHER_PROGRAM in complaint
