"""What is kept of a job's output, and what is read of it, against a plain model: a list of bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.jobs import keeping, output
from perdure.jobs.keeping import MARK, PIECES, SMALLEST, Keeper, marked
from perdure.model.job import Output

PRINTED = st.lists(
    st.tuples(st.binary(max_size=1500) | st.text("aé€\n𝄞", max_size=400).map(str.encode), st.booleans()), max_size=60
)


@contextmanager
def working_in() -> Iterator[str]:
    """A directory that is the present one meanwhile, as a supervisor's is."""
    before = os.getcwd()
    with TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            yield directory
        finally:
            os.chdir(before)


def keep(keeper: Keeper, data: bytes, is_error: bool) -> None:
    keeper.keep(bytearray(data) + b"rest", len(data), is_error)


def all_pieces(directory: str, limit: int) -> list[Output]:
    """Everything that can be read, piece by piece."""
    found = []
    at = 0
    while (piece := output.read(directory, at, limit)).data:
        found.append(piece)
        assert piece.start == at + piece.missing
        assert piece.end == piece.start + len(piece.data)
        at = piece.end
    assert at == output.size(directory)
    return found


def kind_of_each(printed: list[tuple[bytes, bool]]) -> list[bool]:
    return [is_error for data, is_error in printed for _ in data]


def kinds_of(piece: Output) -> list[bool]:
    found = [False] * len(piece.data)
    for a, b in piece.errors:
        assert 0 <= a < b <= len(piece.data)
        found[a:b] = [True] * (b - a)
    return found


@given(printed=PRINTED, limit=st.integers(1, 5000))
def test_what_is_kept_is_what_was_printed(printed: list[tuple[bytes, bool]], limit: int) -> None:
    whole, kinds = b"".join(data for data, _ in printed), kind_of_each(printed)
    with working_in() as directory:
        keeper = Keeper(PIECES * SMALLEST)
        for data, is_error in printed:
            keep(keeper, data, is_error)
        kept = sum(os.stat(name).st_size for name in os.listdir("."))
        assert kept <= PIECES * SMALLEST
        assert (keeper.printed, keeper.dropped) == (len(whole), 0)
        assert output.size(directory) == len(whole)
        pieces = all_pieces(directory, limit)
        assert sum(piece.missing for piece in pieces[1:]) == 0
        first = pieces[0].start if pieces else 0
        assert b"".join(piece.data for piece in pieces) == whole[first:]
        assert [kind for piece in pieces for kind in kinds_of(piece)] == kinds[first:]
        assert len(whole) - first == len(whole) or len(whole) - first > (PIECES - 2) * (SMALLEST // 2)
        tail = output.tail(directory, limit)
        assert tail.data == whole[max(first, len(whole) - limit) :]
        keeper.close()


@given(printed=PRINTED, first=st.integers(-1, 300), limit=st.integers(0, 50))
def test_lines_are_counted_from_the_first_that_was_printed(
    printed: list[tuple[bytes, bool]], first: int, limit: int
) -> None:
    whole = b"".join(data for data, _ in printed)
    lines = [part + b"\n" for part in whole.split(b"\n")[:-1]] + [part for part in whole.split(b"\n")[-1:] if part]
    with working_in() as directory:
        keeper = Keeper(PIECES * SMALLEST)
        for data, is_error in printed:
            keep(keeper, data, is_error)
        found = output.lines(directory, first, limit)
        kept_from = output.read(directory, 0, 1).start if whole else 0
        assert found.total == len(lines)
        wanted = max(len(lines) - limit, 0) if first < 0 else first
        oldest = whole[:kept_from].count(b"\n")
        number = max(wanted, oldest)
        if whole:
            assert found.first == number
            begin = max(len(b"".join(lines[:number])), kept_from)
            end = len(b"".join(lines[: number + limit]))
            assert found.output.data == whole[begin : max(end, begin)]
        keeper.close()


def test_the_last_lines_may_be_too_long_to_be_given_whole() -> None:
    with working_in() as directory:
        keeper = Keeper(1 << 20)
        keep(keeper, b"one\n" + b"x" * 5000 + b"\nlast\n", False)
        found = output.lines(directory, -1, 3, most=10)
        assert found.output.data == b"xxxx\nlast\n"
        assert (found.first, found.total) == (1, 3)
        assert output.lines(directory, 0, 3, most=10).output.data == b"one\nxxxxxx"
        keeper.close()


@given(
    printed=st.lists(st.tuples(st.binary(min_size=1, max_size=900), st.booleans(), st.booleans()), max_size=40),
    limit=st.integers(1, 3000),
)
def test_what_the_disk_did_not_take_is_missing_and_nothing_else(
    printed: list[tuple[bytes, bool, bool]], limit: int
) -> None:
    """A disk that refuses now and then, before or in the middle of what is written."""
    whole = b"".join(data for data, _, _ in printed)
    real = os.write
    taken = bytearray()
    with working_in() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeping, "_RESPITE", 0.0)
        keeper = Keeper(1 << 20)
        for data, is_error, is_full in printed:
            room = len(data) // 3 if is_full else 1 << 20

            def write(handle: int, view: bytes, room: int = room) -> int:
                if len(view) <= MARK and bytes(view)[8:] == bytes(8):
                    return real(handle, view)
                if not room:
                    raise OSError(28, "full")
                return real(handle, view[:room])

            patch.setattr(os, "write", write)
            before = keeper.dropped
            keep(keeper, data, is_error)
            patch.setattr(os, "write", real)
            lost = keeper.dropped - before
            taken += b"\1" * (len(data) - lost) + b"\0" * lost
            assert lost == 0 or is_full
        expected = bytes(byte for byte, is_kept in zip(whole, taken, strict=True) if is_kept)
        pieces = all_pieces(directory, limit) if taken[-1:] != b"\0" else _until_the_end(directory, limit)
        assert b"".join(piece.data for piece in pieces) == expected
        kinds = [is_error for data, is_error, _ in printed for _ in data]
        for piece in pieces:
            assert piece.data == whole[piece.start : piece.end]
            assert kinds_of(piece) == kinds[piece.start : piece.end]
        assert keeper.printed == len(whole)
        keeper.close()


def _until_the_end(directory: str, limit: int) -> list[Output]:
    found = []
    at = 0
    while (piece := output.read(directory, at, limit)).data:
        found.append(piece)
        at = piece.end
    return found


@given(text=st.text("aé€𝄞\n", max_size=300), junk=st.binary(max_size=6), limit=st.integers(1, 50))
def test_text_is_never_torn(text: str, junk: bytes, limit: int) -> None:
    raw = text.encode() + junk + text.encode()
    with working_in() as directory:
        keeper = Keeper(1 << 20)
        keep(keeper, raw, False)
        found = []
        at = 0
        while at < len(raw):
            piece = output.read_text(directory, at, limit, is_over=True)
            assert piece.end > at
            found.append(piece.text)
            at = piece.end
        assert "".join(found) == raw.decode(errors="replace")
        keeper.close()


def test_a_character_that_is_half_there_is_waited_for() -> None:
    with working_in() as directory:
        keeper = Keeper(1 << 20)
        keep(keeper, "a€".encode()[:-1], False)
        piece = output.read_text(directory, 0, is_over=False)
        assert (piece.text, piece.end) == ("a", 1)
        assert output.read_text(directory, 0, is_over=True).text == "a\ufffd"
        keep(keeper, "€".encode()[-1:], False)
        assert output.read_text(directory, piece.end, is_over=False).text == "€"
        keeper.close()


def test_a_character_whose_rest_was_never_kept_is_not_waited_for() -> None:
    with working_in() as directory:
        for offset, data in ((0, b"abcd\xe2"), (10, b"ef")):
            with open(f"out.{offset:020}", "wb") as file:
                file.write(data)
        piece = output.read_text(directory, 0, is_over=False)
        assert (piece.text, piece.end) == ("abcd", 4)
        piece = output.read_text(directory, piece.end, is_over=False)
        assert (piece.text, piece.end) == ("\ufffd", 5)
        piece = output.read_text(directory, piece.end, is_over=False)
        assert (piece.text, piece.missing, piece.end) == ("ef", 5, 12)


def test_what_was_cut_off_in_front_is_left_out() -> None:
    cut = Output(start=1, data="€b".encode()[1:], end=4)
    assert output.text_of(cut, is_last=True, is_cut=True) == ("b", 4)
    assert output.text_of(cut, is_last=True) == ("\ufffd\ufffdb", 4)


def test_everything_may_be_missing(tmp_path: object) -> None:
    directory = str(tmp_path)
    for nothing in (directory, os.path.join(directory, "nowhere")):
        assert output.size(nothing) == 0
        assert output.read(nothing, 5) == Output(start=5, data=b"", end=5)
        assert output.tail(nothing, 5).data == b""
        assert output.lines(nothing, 0, 5).total == 0


def test_marks_that_are_torn_or_gone_cost_only_themselves(tmp_path: object) -> None:
    directory = str(tmp_path)
    for offset, data in ((0, b"first\n"), (6, b"second\n")):
        with open(os.path.join(directory, f"out.{offset:020}"), "wb") as file:
            file.write(data)
    with open(os.path.join(directory, f"err.{0:020}"), "wb") as file:
        file.write(marked(0, 0) + marked(2, 4) + marked(5, 99)[:11])
    found = output.read(directory, 0)
    assert (found.data, found.errors) == (b"first\nsecond\n", ((2, 4),))
    assert output.lines(directory, 1, 1).output.data == b"second\n"
    with open(os.path.join(directory, f"err.{0:020}"), "wb") as file:
        file.write(marked(0, 0) + marked(5, 99))
    assert output.read(directory, 0).errors == ((5, 6),)
    os.unlink(os.path.join(directory, f"out.{0:020}"))
    assert output.read(directory, 0) == Output(start=6, data=b"second\n", end=13, missing=6)
    assert output.tail(directory, 100).data == b"second\n"
