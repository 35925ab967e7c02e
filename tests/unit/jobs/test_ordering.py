from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.errors import UsageError
from perdure.jobs.ordering import LEAST_EVERY, accepted, check_size, new_id
from perdure.model.job import Notify, Order, Terminal
from perdure.model.text import encode

MAKE = Order(argv=("make", "all"), cwd="/home/dev")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"argv": None}, "exactly one"),
        ({"shell": "make all"}, "exactly one"),
        ({"argv": ()}, "words are empty"),
        ({"argv": ("",)}, "words are empty"),
        ({"argv": None, "shell": "  "}, "this one is empty"),
        ({"cwd": "src"}, "absolute path"),
        ({"argv": ("make", "a\0b")}, "NUL"),
        ({"argv": "make"}, "a list of texts"),
        ({"argv": ("make", 3)}, "a list of texts"),
        ({"argv": None, "shell": b"make"}, "are texts"),
        ({"owner": 5}, "are texts"),
        ({"env": {"A": 5}}, "are texts"),
        ({"env": {b"A": "5"}}, "are texts"),
        ({"owner": ""}, "cannot be empty"),
        ({"owner": "a\0"}, "NUL"),
        ({"env": {"A=B": "c"}}, "without '='"),
        ({"env": {"": "c"}}, "without '='"),
        ({"env": {"A": "c\0"}}, "NUL"),
        ({"terminal": Terminal(rows=0)}, "rows and columns"),
        ({"terminal": Terminal(columns=65536)}, "rows and columns"),
        ({"notify": Notify(patterns=("",))}, "every line"),
        ({"notify": Notify(patterns=("a\nb",))}, "within a line"),
        ({"notify": Notify(patterns=("é" * 2049,))}, "no more than 4096 bytes"),
        ({"notify": Notify(every_seconds=0.0)}, "more than none"),
        ({"notify": Notify(every_seconds=float("nan"))}, "more than none"),
        ({"notify": Notify(every_seconds=float("inf"))}, "more than none"),
    ],
)
def test_an_order_that_makes_no_sense_is_a_sentence(changes: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        accepted(replace(MAKE, **changes))


def test_too_often_is_less_often_and_said_so() -> None:
    order, notes = accepted(replace(MAKE, notify=Notify(every_seconds=5.0)))
    assert order.notify.every_seconds == LEAST_EVERY
    assert len(notes) == 1
    assert "5 s" in notes[0]
    assert "30 s" in notes[0]
    assert accepted(replace(MAKE, notify=Notify(every_seconds=LEAST_EVERY)))[1] == ()


def test_a_text_to_be_told_of_can_be_kept_whatever_its_bytes_are() -> None:
    order, _ = accepted(replace(MAKE, notify=Notify(patterns=("caf\udce9",))))
    assert encode(order.notify.patterns[0]) == b"caf\xe9"
    assert "\udce9" not in order.notify.patterns[0]


def test_what_is_right_stays_as_it_is() -> None:
    assert accepted(MAKE) == (MAKE, ())
    text = Order(shell="make all", cwd="/", owner="r7", terminal=Terminal())
    assert accepted(text) == (text, ())


WORD = st.binary(min_size=1, max_size=8).filter(lambda raw: b"\0" not in raw)


@given(st.lists(WORD, min_size=1, max_size=4))
def test_words_of_any_bytes_can_be_kept_and_come_out_again(words: list[bytes]) -> None:
    order = replace(MAKE, argv=tuple(word.decode(errors="surrogateescape") for word in words))
    argv = accepted(order)[0].argv
    assert argv is not None
    assert [encode(word) for word in argv] == words
    "".join(argv).encode()


def test_ids_differ() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(id.isascii() and id.isalnum() and id.startswith("j") for id in ids)


def test_the_largest_terminal() -> None:
    check_size(65535, 1)
    with pytest.raises(UsageError):
        check_size(24, 0)
