"""What a pane shows now, and what of it has scrolled away."""

from __future__ import annotations

from perdure.host.users import current_user
from perdure.tmux.screen import read_lines, read_lines_and_history
from tests.integration.looking import wait_until
from tests.tmux_server import PATIENCE, TmuxServer

LINES = tuple(f"line {number}" for number in range(1, 31))


def show(tmux: TmuxServer, after: str = "") -> str:
    """Open a pane of ten rows that writes thirty lines, then something else, and waits; return its id."""
    command = f"seq -f 'line %.0f' 30; printf '{after}\\033]2;shown\\007'; exec sleep 1000"
    made = ["new-session", "-d", "-x", "40", "-y", "10", "-P", "-F", "#{pane_id}", command]
    pane = tmux.run(*made).decode().strip()
    wait_until(lambda: tmux.show("#{pane_title}", pane) == "shown", "the text is shown")
    return pane


def read(tmux: TmuxServer, pane: str, most: int) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    return read_lines_and_history(tmux.socket, pane, current_user(), most=most, timeout=PATIENCE)


def test_the_lines_above_come_as_far_as_is_asked_for(tmux: TmuxServer) -> None:
    pane = show(tmux)

    assert read(tmux, pane, 1000) == ((*LINES[21:], ""), LINES[:21])
    assert read(tmux, pane, 3) == ((*LINES[21:], ""), LINES[18:21])
    assert read_lines(tmux.socket, pane, current_user()) == (*LINES[21:], "")


def test_what_is_above_a_program_that_has_the_screen_to_itself_is_not_its_own(tmux: TmuxServer) -> None:
    pane = show(tmux, r"\033[?1049h\033[Hmine")

    assert read(tmux, pane, 1000) == (("mine", *[""] * 9), ())


def test_a_pane_that_is_not_there_gives_nothing(tmux: TmuxServer) -> None:
    show(tmux)

    assert read(tmux, "%99", 1000) is None
