"""What waits for a viewer: a screen and all that follows it, or another screen; never more than so much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perdure.daemon.backlog import Backlog
from perdure.model.terminal import Closed, Frame, Printed, Resized, Screen, Sized

MOST = 20


def screen(text: str = "") -> Screen:
    return Screen(cols=80, rows=24, cursor=(0, 0), title="", alternate=False, text=text)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("print"), st.integers(1, 12)),
        st.tuples(st.sampled_from(("take", "show", "drop", "resize")), st.just(0)),
    ),
    max_size=60,
)


class Reader:
    """Shows what it takes. `at` is how far a pane had come that prints 0, 1, 2 …, as far as that was shown."""

    def __init__(self, backlog: Backlog) -> None:
        self.backlog = backlog
        self.at: int | None = None

    def take(self) -> Frame | None:
        frame = self.backlog.take()
        if isinstance(frame, Screen):
            self.at = int(frame.text)
        elif isinstance(frame, Printed):
            assert self.at is not None
            assert [ord(each) - 0x100 for each in frame.text] == list(range(self.at, self.at + len(frame.text)))
            self.at += len(frame.text)
        return frame


@given(steps)
def test_what_is_shown_is_the_last_screen_and_all_that_was_printed_after_it(steps: list[tuple[str, int]]) -> None:
    reader = Reader(Backlog(MOST))
    backlog, printed = reader.backlog, 0
    for what, count in steps:
        match what:
            case "print":
                backlog.print("".join(chr(0x100 + printed + each) for each in range(count)))
                printed += count
            case "show":
                backlog.show(screen(str(printed)))
            case "drop":
                backlog.drop()
            case "resize":
                backlog.resize(1, 1)
            case "take":
                reader.take()
    waiting = 0
    while (frame := reader.take()) is not None:
        waiting += len(frame.text) if isinstance(frame, Printed) else 0
    assert waiting <= MOST
    # Nothing is left out: whoever takes everything stands where the pane does, or wants a screen.
    assert is_waiting_for_screen(backlog) or reader.at == printed


def is_waiting_for_screen(backlog: Backlog) -> bool:
    return backlog.wants_screen


def test_nothing_is_shown_before_a_screen_and_too_much_asks_for_another() -> None:
    backlog = Backlog(MOST)
    backlog.print("lost")
    assert backlog.take() is None
    assert backlog.wants_screen
    backlog.show(screen("a"))
    backlog.print("x" * MOST)
    assert not is_waiting_for_screen(backlog)
    backlog.print("y")
    assert is_waiting_for_screen(backlog)
    assert backlog.take() is None


def test_small_pieces_are_shown_together() -> None:
    backlog = Backlog()
    backlog.show(screen())
    for each in "abc":
        backlog.print(each)
    assert [backlog.take(), backlog.take(), backlog.take()] == [screen(), Printed(text="abc"), None]


def test_a_new_size_comes_before_the_screen_that_has_it() -> None:
    backlog = Backlog()
    backlog.show(screen())
    backlog.print("old")
    backlog.resize(1, 2)
    backlog.resize(3, 4)
    backlog.show(screen("new"))
    assert [backlog.take(), backlog.take(), backlog.take()] == [Resized(cols=3, rows=4), screen("new"), None]


def test_whose_the_size_is_is_told_once_and_however_much_is_let_go_of() -> None:
    backlog = Backlog()
    backlog.show(screen("old"))
    backlog.size(taken=True)
    backlog.size(taken=False)
    backlog.drop()
    backlog.resize(3, 4)
    backlog.show(screen("new"))
    frames = [backlog.take() for _ in range(4)]
    assert frames == [Sized(taken=False), Resized(cols=3, rows=4), screen("new"), None]


def test_the_end_is_the_last_that_is_told() -> None:
    backlog = Backlog()
    backlog.show(screen())
    backlog.print("bye")
    backlog.close("gone")
    backlog.close("again")
    backlog.print("late")
    backlog.show(screen("late"))
    backlog.drop()
    assert [backlog.take() for _ in range(4)] == [screen(), Printed(text="bye"), Closed(why="gone"), None]
    assert not backlog.wants_screen
