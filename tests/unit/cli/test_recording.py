"""Screens kept as files: no part of a key in them, and everything else where it was."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.recording import write_recording
from perdure.errors import PerdureError
from perdure.model.masked import without_keys
from perdure.snapshots.explain import Verdict
from tests.conftest import PrivateHome

# Put together here, so that no scanner takes this file for a leak.
KEY = "sk-" + "ant-api03-" + "".join(f"{number:02}xY" for number in range(24))
BEGIN, END = ("-----" + word + " OPENSSH PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
BODY = ["b3BlbnNzaC1rZXktdjEA" + "QyNTUxOQAAACBz" * 3 + str(number) for number in range(3)]


def kept(home: PrivateHome, lines: Sequence[str], width: int) -> list[str]:
    """Return the lines as they are in the file."""
    path = write_recording(home.root, lines, "", Verdict(), home="/", width=width)
    with open(f"{path}.txt", encoding="utf-8") as file:
        return file.read().removesuffix("\n").split("\n")


def hides(text: str, shown: Sequence[str]) -> bool:
    """No six characters of the text in a row are left."""
    return not any(text[at : at + 6] in line for line in shown for at in range(len(text) - 5))


def wrapped(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


@pytest.mark.parametrize("width", [20, 37, 80])
@pytest.mark.parametrize("before", ["", "the key is ", "wörter 漢字 ", "x" * 31])
def test_a_key_that_the_terminal_wrapped_is_hidden_whole(private_home: PrivateHome, before: str, width: int) -> None:
    lines = ["$ cat key", *wrapped(f"{before} {KEY} and more", width), "$ "]
    shown = kept(private_home, lines, width)
    assert hides(KEY, shown)
    assert [len(line) for line in shown] == [len(line) for line in lines]
    assert (shown[0], shown[-1]) == (lines[0], lines[-1])
    assert "".join(shown).endswith(" more$ ")


@given(st.integers(8, 100), st.integers(0, 120), st.sampled_from(["word ", "x=1, ", "漢字 "]))
def test_wherever_it_is_broken(width: int, before: int, filler: str) -> None:
    text = (filler * 60)[:before] + " " + KEY
    shown = without_keys(wrapped(text, width), width)
    assert hides(KEY, shown)


@pytest.mark.parametrize("edge", [("│ ", " │"), ("  ┃ ", "    ┃"), ("    ", "")])
@pytest.mark.parametrize("inner", [40, 61])
def test_a_key_that_a_program_wrapped_in_its_box_is_hidden_whole(
    private_home: PrivateHome, edge: tuple[str, str], inner: int
) -> None:
    left, right = edge
    text = [*wrapped(f"export API_KEY={KEY}", inner), "Do you want to proceed?", "> 1. Yes"]
    lines = [f"{left}{line.ljust(inner)}{right}".rstrip() for line in text]
    shown = kept(private_home, lines, inner + len(left + right) + 2)
    assert hides(KEY, shown)
    assert shown[-2:] == lines[-2:]
    assert all(line.startswith(left) and line.endswith(right) for line in shown)


def test_the_value_of_a_flag_at_the_end_of_a_line_is_hidden(private_home: PrivateHome) -> None:
    lines = ["agent --some-option and-a-value --token", "hunter2 --verbose"]
    assert kept(private_home, lines, 40) == [lines[0], "******* --verbose"]


@pytest.mark.parametrize(
    ("above", "below"), [((BEGIN,), (END,)), ((BEGIN,), ()), ((), (END,)), ((f"1 + {BEGIN}",), (f"9 + {END}",))]
)
@pytest.mark.parametrize("margin", ["", "    ", "│ "])
def test_nothing_of_a_private_key_is_left(
    private_home: PrivateHome, above: tuple[str, ...], below: tuple[str, ...], margin: str
) -> None:
    lines = [margin + line for line in (*above, *BODY, *below)]
    lines = [*(["$ cat key"] if above else []), *lines, *(["$ "] if below else [])]
    shown = kept(private_home, lines, 120)
    assert all(hides(line, shown) for line in BODY)
    assert [len(line) for line in shown] == [len(line) for line in lines]
    if above:
        assert shown[0] == "$ cat key"
    if below:
        assert shown[-1] == "$ "


def test_a_whole_key_takes_nothing_of_the_next_line_with_it(private_home: PrivateHome) -> None:
    lines = [f"key {KEY}", "Esc to cancel", "the token", "is here"]
    assert kept(private_home, lines, 160)[1:] == lines[1:]


@given(st.lists(st.text("abc de,.│─>\u6f22 ", max_size=40), max_size=12), st.integers(1, 60))
def test_a_screen_without_keys_stays_as_it_is(lines: list[str], width: int) -> None:
    assert without_keys(lines, width) == lines


def test_a_recording_that_fails_half_way_leaves_nothing(
    private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = os.path.join(private_home.root, "kept")
    real = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if path.endswith(".json"):
            raise OSError(28, "No space left on device")
        return real(path, flags, mode)

    # Put back at once: without it nothing can be removed at the end of the test.
    with monkeypatch.context() as now:
        now.setattr(os, "open", full)
        with pytest.raises(PerdureError, match="No space left"):
            write_recording(folder, ["a"], "", Verdict(), home="/", width=80)
    assert os.listdir(folder) == []
