"""What is wrong with a request, in words."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from perdure.api.wrong import BODY, missing, sentence


class Taken(Struct, forbid_unknown_fields=True):
    number: Annotated[int, Meta(ge=1, le=9)] = 1
    some: Annotated[list[str], Meta(min_length=1)] | None = None
    share: Annotated[float, Meta(le=2)] = 1
    word: Annotated[str, Meta(max_length=3)] = ""
    like: Annotated[str, Meta(pattern="^[a-f]+$")] = "a"
    named: Annotated[str, Meta(pattern="^[^/\\x00]+$")] = "a"
    id: Annotated[str, Meta(pattern="^%[0-9]{1,9}$")] = "%1"
    mode: Literal["kind", "free"] = "free"
    at: datetime | None = None


class Needs(Struct):
    text: str


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"number": 0}, "`number` has to be at least 1."),
        ({"number": 10}, "`number` has to be at most 9."),
        ({"number": "x"}, "`number` has to be a whole number, not a text."),
        ({"some": "x"}, "`some` has to be a list or null, not a text."),
        ({"some": []}, "`some` has to have at least 1 item."),
        ({"share": 2.5}, "`share` has to be at most 2."),
        ({"word": "four"}, "`word` has to have at most 3 characters."),
        ({"like": "z"}, "`like` is not written as it has to be."),
        ({"named": "a/b"}, "`named` has to be a program's name, without a path."),
        ({"id": "z"}, "`id` has to be a pane's id, such as %3."),
        ({"mode": "z"}, "`mode` is none of the words it may be."),
        ({"at": "z"}, "`at` has to be a moment with its zone, such as 2026-01-31T12:00:00Z."),
        ({"other": 1}, "There is no field `other`."),
        ([], "The body has to be an object, not a list."),
    ],
)
def test_what_msgspec_notices_is_said_in_words(given: object, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as noticed:
        msgspec.convert(given, Taken)
    words, _, place = str(noticed.value).partition(" - at `$")
    assert sentence(place.strip("`.") or BODY, words) == said


@pytest.mark.parametrize("body", [b"{", b"", b"\xff", b"a=b", b'{"word":"\\ud800"}', b'{"word":"\xff"}', b"{} {}"])
def test_a_body_that_is_no_json_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as noticed:
        msgspec.json.decode(body, type=Taken)
    assert sentence(BODY, str(noticed.value)) == "The body is no JSON that can be read."


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(msgspec.ValidationError) as noticed:
        msgspec.convert({}, Needs)
    assert sentence(BODY, str(noticed.value)) == "`text` is missing."
    assert sentence("terminal", str(noticed.value)) == "`terminal.text` is missing."
    needed = "Missing required query parameter 'until' for path /api/runs/r1/wait"
    assert sentence(BODY, needed) == "`until` is missing."
    assert sentence(BODY, needed, ("idle", "busy")) == "`until` is missing; it has to be idle or busy."
    assert missing(needed) == "until"
    assert sentence(BODY, repr(BODY)) == "A body is needed, which is JSON."


@pytest.mark.parametrize(
    ("words", "said"), [(("a",), "a"), (("a", "b"), "a or b"), (("a", "b", "c"), "one of a, b, c")]
)
def test_the_words_that_something_may_be_are_told(words: tuple[str, ...], said: str) -> None:
    assert sentence("mode", "Invalid enum value 'x'", words) == f"`mode` has to be {said}."


@given(key=st.text(), noticed=st.text())
def test_whatever_was_noticed_is_a_sentence(key: str, noticed: str) -> None:
    assert sentence(key, noticed).endswith(".")
