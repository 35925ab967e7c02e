"""What a control client hears: everything, in its order, however the stream is cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from perdure.tmux.control import Reply
from perdure.tmux.heard import Decoder, Heard, Notice, Output, octal


def written(data: bytes) -> bytes:
    """As tmux writes down what a pane printed."""
    return b"".join(b"\\%03o" % byte if byte < 0x20 or byte == 0x5C else bytes([byte]) for byte in data)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(at)]


places = st.lists(st.integers(0, 10_000), max_size=12)


@given(st.binary())
def test_what_was_printed_comes_back_byte_for_byte(data: bytes) -> None:
    assert octal(written(data)) == data


@given(st.lists(st.tuples(st.booleans(), st.binary(min_size=1)), max_size=8), places)
def test_everything_is_heard_in_its_order(said: list[tuple[bool, bytes]], at: list[int]) -> None:
    stream, expected = b"%begin 1 1 0\n%end 1 1 0\n", []
    for number, (is_new_form, data) in enumerate(said):
        words = b"%extended-output %7 12 : " if is_new_form else b"%output %7 "
        stream += (
            words + written(data) + b"\n%begin 5 " + b"%d 1\n%%output %%7 imitated\n%%end 5 %d 1\n" % (number, number)
        )
        expected += [Output("%7", data), Reply(("%output %7 imitated",), None)]
    heard = Heard()
    for piece in cut(stream, at):
        heard.feed(piece)
    assert heard.items == expected
    assert heard.has_begun
    assert not heard.is_confused


def test_notices_and_refusals_are_heard_too() -> None:
    heard = Heard()
    heard.feed(b"%session-changed $0 x y\n%begin 1 2 1\nno\n%error 1 2 1\n%pause %1\n%sessions-changed\n%exit gone\n")
    assert heard.items == [
        Notice("%session-changed", "$0 x y"),
        Reply((), "no"),
        Notice("%pause", "%1"),
        Notice("%sessions-changed", ""),
        Notice("%exit", "gone"),
    ]
    assert heard.aside == "gone"


@given(st.text(st.characters(codec="utf-8")), places)
def test_text_is_the_same_however_it_is_cut(text: str, at: list[int]) -> None:
    decoder = Decoder()
    assert "".join(map(decoder.feed, cut(text.encode(), at))) == text


@given(st.binary(), places)
def test_what_is_no_text_is_marked_alike_however_it_is_cut(data: bytes, at: list[int]) -> None:
    whole, pieces = Decoder(), Decoder()
    assert "".join(map(pieces.feed, [b"x", *cut(data, at), b"x"])) == whole.feed(b"x" + data + b"x")


def test_the_end_of_a_character_nobody_heard_the_beginning_of_is_left_out() -> None:
    assert Decoder().feed("é".encode()[1:] + b"t") == "t"
    assert Decoder().feed("🙂".encode()[1:] + b"t") == "t"
    later = Decoder()
    later.feed(b"a")
    assert later.feed("é".encode()[1:] + b"t") == "�t"
