from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.chats.delivery import Destination, Target, parse_target, resolve
from perdure.errors import NotFound, PerdureError, UsageError
from perdure.model.chat import HomeChannel, Source
from tests.unit.chats.strangers import IDS, NAMES

HOMES = {
    "slack": HomeChannel(platform="slack", chat_id="C1", thread_id="t"),
    "signal": HomeChannel(platform="signal", chat_id=""),
}


def to(platform: str, chat: str | None = None, thread: str | None = None) -> Target:
    return Target(platform=platform, chat_id=chat, thread_id=thread)


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("origin", Target(is_origin=True), "origin"),
        (" Origin\n", Target(is_origin=True), "origin"),
        ("local", to("local"), "local"),
        ("LOCAL", to("local"), "local"),
        ("telegram", to("telegram"), "telegram"),
        ("Telegram:AbC", to("telegram", "AbC"), "telegram:AbC"),
        ("telegram:-100:17", to("telegram", "-100", "17"), "telegram:-100:17"),
        ("slack:C:a:b", to("slack", "C", "a:b"), "slack:C:a%3Ab"),
        ("slack : C : t ", to("slack", "C", "t"), "slack:C:t"),
        ("slack:C%3AD:%25", to("slack", "C:D", "%"), "slack:C%3AD:%25"),
        ("slack:a%20b", to("slack", "a%20b"), "slack:a%2520b"),
        ("matrix:!r:example.org", to("matrix", "!r:example.org"), "matrix:!r%3Aexample.org"),
        (
            "matrix:!r:example.org:8448:$e",
            to("matrix", "!r:example.org:8448", "$e"),
            "matrix:!r%3Aexample.org%3A8448:$e",
        ),
        ("matrix:!r%3Aexample.org:$e", to("matrix", "!r:example.org", "$e"), "matrix:!r%3Aexample.org:$e"),
    ],
)
def test_what_is_meant(text: str, target: Target, words: str) -> None:
    assert parse_target(text) == target
    assert str(target) == words
    assert parse_target(words) == target


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("telegarm", "There is no platform 'telegarm'; telegram may be meant"),
        ("telegarm:5", "There is no platform 'telegarm'"),
        ("", "nowhere to deliver to"),
        ("  ", "nowhere to deliver to"),
        (":5", "There is no platform ''"),
        ("origin:5", "There is no platform 'origin'"),
        ("telegram:", "names no chat"),
        ("telegram::5", "names no chat"),
        ("telegram:5:", "names no thread"),
        ("local:cli", "names a chat on this machine"),
        ("tele\ngram", "There is no platform"),
    ],
)
def test_what_cannot_be_meant_is_a_mistake_and_never_a_local_file(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as failed:
        parse_target(text)
    assert failed.value.message.endswith(".")
    assert "\n" not in failed.value.message


PLAIN_IDS = IDS.map(str.strip).filter(bool)
#: Matrix apart: there a chat and a thread are told from each other by how they begin.
TARGETS = st.one_of(
    st.just(Target(is_origin=True)),
    st.builds(to, NAMES),
    st.builds(to, NAMES.filter(lambda name: name not in ("local", "matrix")), PLAIN_IDS, st.none() | PLAIN_IDS),
    st.builds(to, st.just("matrix"), PLAIN_IDS.map("!{}".format), st.none() | PLAIN_IDS.map("${}".format)),
)


@given(TARGETS)
def test_the_words_for_a_target_mean_that_target(target: Target) -> None:
    assert parse_target(str(target)) == target


@given(st.one_of(st.text(), st.lists(IDS | NAMES, max_size=4).map(":".join)))
def test_any_words_are_a_target_or_a_sentence(text: str) -> None:
    said = ""
    try:
        target = parse_target(text)
        assert parse_target(str(target)) == target
        assert target.platform != "local" or text.strip().lower() in ("local", "origin")
    except PerdureError as error:
        said = error.message
    assert "\n" not in said


ORIGIN = Source(platform="telegram", chat_id="-100", chat_type="group", thread_id="17", user_id="7")


@pytest.mark.parametrize(
    ("text", "origin", "expected"),
    [
        ("origin", ORIGIN, Destination(platform="telegram", chat_id="-100", thread_id="17")),
        ("origin", None, Destination(platform="local")),
        ("origin", Source(platform="local", chat_id="cli"), Destination(platform="local")),
        ("local", ORIGIN, Destination(platform="local")),
        ("slack", ORIGIN, Destination(platform="slack", chat_id="C1", thread_id="t")),
        ("slack:C2", ORIGIN, Destination(platform="slack", chat_id="C2")),
        ("telegram:5:6", None, Destination(platform="telegram", chat_id="5", thread_id="6")),
    ],
)
def test_where_it_goes(text: str, origin: Source | None, expected: Destination) -> None:
    assert resolve(parse_target(text), origin, HOMES) == expected


@pytest.mark.parametrize("text", ["discord", "signal"])
def test_a_platform_without_a_home_is_said_to_have_none(text: str) -> None:
    with pytest.raises(NotFound, match=f"{text} has no home channel; name a chat, as in {text}:ID"):
        resolve(parse_target(text), ORIGIN, HOMES)


def test_an_origin_that_tells_no_chat_cannot_be_answered() -> None:
    with pytest.raises(NotFound, match="does not tell which chat"):
        resolve(Target(is_origin=True), Source(platform="slack", chat_id="", user_id="7"), HOMES)
