from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from perdure.chats.key import file_name_of, is_safe_id, is_safe_key, is_shared, key_of, legacy_key_of
from perdure.chats.whatsapp import NO_ALIASES, Aliases
from perdure.errors import UsageError
from perdure.model.chat import PLATFORMS, KeyRules, Source
from perdure.model.config import ChatKeysConfig
from tests.unit.chats.strangers import IDS, NAMES, sources

ISOLATED = ChatKeysConfig()
PER_PLATFORM = ChatKeysConfig(rules=KeyRules.PER_PLATFORM)
WHATSAPP_BY_CHAT = ChatKeysConfig(rules=KeyRules.WHATSAPP_BY_CHAT)
KEYS = st.builds(
    ChatKeysConfig,
    rules=st.just(KeyRules.ISOLATED),
    group_sessions_per_user=st.booleans(),
    thread_sessions_per_user=st.booleans(),
    multiplex_profiles=st.booleans(),
    profile=st.sampled_from(["", "default", "main", "work"]),
)
#: Known ones, and one whose ids are unique within a scope only.
ALL_PLATFORMS = st.one_of(NAMES, st.just("irc"))


def at(platform: str = "telegram", **fields: Any) -> Source:
    return Source(**{"platform": platform, "chat_id": "", **fields})


@pytest.mark.parametrize(
    ("keys", "source", "expected"),
    [
        (PER_PLATFORM, at(chat_id="99"), "agent:main:telegram:dm"),
        (PER_PLATFORM, at("whatsapp", chat_id="99"), "agent:main:whatsapp:dm"),
        (PER_PLATFORM, at("discord", chat_id="g", chat_type="group"), "agent:main:discord:group:g"),
        (WHATSAPP_BY_CHAT, at(chat_id="99"), "agent:main:telegram:dm"),
        (WHATSAPP_BY_CHAT, at("whatsapp", chat_id="1@c.us"), "agent:main:whatsapp:dm:1@c.us"),
        (WHATSAPP_BY_CHAT, at("whatsapp"), "agent:main:whatsapp:dm"),
        (WHATSAPP_BY_CHAT, at(chat_id="g", chat_type="group", thread_id="5"), "agent:main:telegram:group:g"),
    ],
)
def test_the_earlier_rules(keys: ChatKeysConfig, source: Source, expected: str) -> None:
    assert key_of(source, keys) == legacy_key_of(source, keys) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"chat_id": "99"}, "telegram:dm:99"),
        ({"chat_id": "100", "user_id": "7"}, "telegram:dm:100"),
        ({"chat_id": "99", "thread_id": "5"}, "telegram:dm:99:5"),
        ({"user_id": "7"}, "telegram:dm:7"),
        ({"user_id": "7", "user_id_alt": "alt", "thread_id": "5"}, "telegram:dm:alt:5"),
        ({"chat_type": "group", "chat_id": "guild-123", "user_id": "alice"}, "telegram:group:guild-123:alice"),
        ({"chat_type": "group", "chat_id": "g", "user_id": "a", "user_id_alt": "b"}, "telegram:group:g:b"),
        ({"chat_type": "channel", "chat_id": "-1002"}, "telegram:channel:-1002"),
        ({"platform": "local", "chat_id": "cli"}, "local:dm:cli"),
        ({"platform": "whatsapp", "chat_id": "+1555:3@s.whatsapp.net"}, "whatsapp:dm:1555"),
        (
            {"platform": "whatsapp", "chat_id": "9@g.us", "chat_type": "group", "user_id": "1@c.us"},
            "whatsapp:group:9@g.us:1",
        ),
    ],
)
def test_ordinary_ids_give_the_key_they_always_gave(fields: dict[str, str], expected: str) -> None:
    assert key_of(at(**fields), ISOLATED) == legacy_key_of(at(**fields), ISOLATED) == f"agent:main:{expected}"


def test_groups_may_be_shared_and_threads_may_be_everybodys_own() -> None:
    group = at(chat_type="group", chat_id="-1002", user_id="42")
    thread = msgspec.structs.replace(group, thread_id="17585")
    shared = ChatKeysConfig(group_sessions_per_user=False)
    apart = ChatKeysConfig(thread_sessions_per_user=True)
    assert key_of(group, shared) == "agent:main:telegram:group:-1002"
    assert key_of(thread, apart) == "agent:main:telegram:group:-1002:17585:42"
    assert legacy_key_of(thread, ISOLATED) == "agent:main:telegram:group:-1002:17585"
    other = msgspec.structs.replace(thread, user_id="43")
    assert key_of(thread, ISOLATED) == key_of(other, ISOLATED) == key_of(thread, shared)


def test_a_thread_is_not_taken_for_the_chat_of_a_person_with_the_same_id() -> None:
    group = at(chat_type="group", chat_id="g")
    thread, person = msgspec.structs.replace(group, thread_id="7"), msgspec.structs.replace(group, user_id="7")
    assert key_of(thread, ISOLATED) != key_of(person, ISOLATED)
    assert legacy_key_of(thread, ISOLATED) == legacy_key_of(person, ISOLATED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"chat_id": "a:b"}, {"chat_id": "a", "thread_id": "b"}),
        ({"chat_id": "a%3Ab"}, {"chat_id": "a:b"}),
        ({"chat_id": "a", "profile": "main"}, {"chat_id": "a"}),
        ({"chat_id": "a", "profile": "x"}, {"chat_id": "a", "profile": "y"}),
        ({"platform": "irc", "scope_id": "x", "chat_id": "#a"}, {"platform": "irc", "scope_id": "y", "chat_id": "#a"}),
        ({"chat_id": "x" * 400 + "1"}, {"chat_id": "x" * 400 + "2"}),
        ({"platform": "whatsapp", "chat_id": "15@lid"}, {"platform": "whatsapp", "chat_id": "15"}),
    ],
)
def test_what_is_nearly_the_same_is_not_the_same(one: dict[str, str], other: dict[str, str]) -> None:
    assert key_of(at(**one), ISOLATED) != key_of(at(**other), ISOLATED)


def test_a_known_platforms_chat_is_the_same_whether_or_not_its_scope_is_told() -> None:
    channel = at("discord", chat_type="channel", chat_id="5", user_id="7")
    assert key_of(msgspec.structs.replace(channel, scope_id="guild"), ISOLATED) == key_of(channel, ISOLATED)


def test_a_scope_may_be_a_part_of_any_key_and_is_no_chat_then() -> None:
    channel = at("slack", chat_type="channel", chat_id="C0", user_id="U1", scope_id="T2")
    key = key_of(channel, ISOLATED, scoped=True)
    assert key == "agent:main:slack:channel::T2:C0:U1"
    assert key_of(msgspec.structs.replace(channel, scope_id=None), ISOLATED, scoped=True) == key_of(channel, ISOLATED)
    thread = at("slack", chat_type="channel", chat_id="T2", thread_id="C0", user_id="U1")
    assert key_of(thread, ChatKeysConfig(thread_sessions_per_user=True)) != key


@pytest.mark.parametrize(
    ("keys", "profile", "namespace"),
    [
        (ISOLATED, None, "main"),
        (ISOLATED, "default", "main"),
        (ISOLATED, "work", "work"),
        (ChatKeysConfig(profile="home"), None, "home"),
        (ChatKeysConfig(profile="home"), "work", "work"),
        (ChatKeysConfig(profile="home", multiplex_profiles=False), "work", "main"),
    ],
)
def test_the_account_a_message_came_in_by_is_a_namespace(keys: ChatKeysConfig, profile: str, namespace: str) -> None:
    assert key_of(at(chat_id="1", profile=profile), keys) == f"agent:{namespace}:telegram:dm:1"


@pytest.mark.parametrize(
    "fields",
    [{}, {"thread_id": "5"}, {"chat_type": "group"}, {"chat_type": "group", "user_id": "7"}, {"user_name": "Ann"}],
)
def test_a_conversation_that_cannot_be_told_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"without the id of a chat.*share its conversation with strangers\.$"):
        key_of(at(**fields), ISOLATED)


def test_a_person_on_whatsapp_is_known_by_every_id() -> None:
    aliases = Aliases({"998877665544332@lid": "15551234567"})
    for chat in ("998877665544332@lid", "15551234567@s.whatsapp.net", "+15551234567"):
        assert key_of(at("whatsapp", chat_id=chat), ISOLATED, aliases) == "agent:main:whatsapp:dm:15551234567"
        group = at("whatsapp", chat_type="group", chat_id="9@g.us", user_id=chat)
        assert key_of(group, ISOLATED, aliases) == "agent:main:whatsapp:group:9@g.us:15551234567"


def conversation(source: Source, keys: ChatKeysConfig) -> tuple[object, ...]:
    """What makes messages one conversation, said without a key."""
    profile = (source.profile or keys.profile or None) if keys.multiplex_profiles else None
    person = source.user_id_alt or source.user_id or None
    chat = source.chat_id
    if source.platform == "whatsapp":
        person = person and NO_ALIASES.canonical(person)
        chat = NO_ALIASES.canonical(chat) if source.chat_type == "dm" else chat
    where = (
        None if profile == "default" else profile,
        source.platform,
        source.chat_type,
        None if source.platform in PLATFORMS else source.scope_id or None,
    )
    if source.chat_type == "dm":
        return (*where, chat or person, source.thread_id or None)
    apart = keys.thread_sessions_per_user if source.thread_id else keys.group_sessions_per_user
    return (*where, chat, source.thread_id or None, person if apart else None)


def sender(source: Source) -> str:
    """Who wrote; when nobody can be told, the chat."""
    person = source.user_id_alt or source.user_id or source.chat_id
    return NO_ALIASES.canonical(person) if source.platform == "whatsapp" else person


def key_or_none(source: Source, keys: ChatKeysConfig) -> str | None:
    try:
        return key_of(source, keys)
    except UsageError:
        return None


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Source, Source]:
    """Two sources that differ in a few fields, often by having each other's texts in other places."""
    one = draw(sources(platforms=ALL_PLATFORMS))
    texts = [value for value in msgspec.structs.astuple(one) if isinstance(value, str) and value]
    text = st.one_of(st.sampled_from(texts), IDS, st.tuples(st.sampled_from(texts), IDS).map(":".join))
    places = ["chat_id", "thread_id", "user_id", "user_id_alt", "profile", "scope_id"]
    changed = draw(st.dictionaries(st.sampled_from(places), text | st.just(""), max_size=4))
    return one, msgspec.structs.replace(one, chat_type=draw(st.just(one.chat_type) | text), **changed)


@given(neighbours(), KEYS)
@example((at(chat_type="g", chat_id="a", thread_id="7"), at(chat_type="g", chat_id="a", user_id="7")), ISOLATED)
@example((at("irc", scope_id="a", chat_id="b"), at("irc", chat_id="a", thread_id="b")), ISOLATED)
@example((at(chat_id="a", profile="main"), at(chat_id="a", profile="default")), ISOLATED)
def test_two_messages_share_a_key_exactly_when_they_share_a_conversation(
    pair: tuple[Source, Source], keys: ChatKeysConfig
) -> None:
    first, second = (key_or_none(each, keys) for each in pair)
    assume(first is not None and second is not None)
    assert (first == second) == (conversation(pair[0], keys) == conversation(pair[1], keys))


@given(neighbours(), st.tuples(st.booleans(), st.booleans()))
@example((at(chat_id="a", user_id="b"), at(chat_id="a", thread_id="b", user_id="b")), (True, False))
@example((at(chat_id="a"), at(chat_id="a")), (True, False))
def test_a_sender_may_be_a_part_of_a_direct_messages_key_and_is_no_thread_then(
    pair: tuple[Source, Source], personal: tuple[bool, bool]
) -> None:
    pair = tuple(msgspec.structs.replace(each, chat_type="dm") for each in pair)  # type: ignore[assignment]
    assume(all(key_or_none(each, ISOLATED) for each in pair))
    first, second = (key_of(each, ISOLATED, personal=own) for each, own in zip(pair, personal, strict=True))
    wholes = [(conversation(each, ISOLATED), own and sender(each)) for each, own in zip(pair, personal, strict=True)]
    assert (first == second) == (wholes[0] == wholes[1])


@given(sources(platforms=ALL_PLATFORMS), KEYS, sources())
def test_what_passes_does_not_count(source: Source, keys: ChatKeysConfig, other: Source) -> None:
    passing = ["chat_name", "chat_topic", "user_name", "message_id", "is_bot", "role_authorized", "relayed"]
    changed = msgspec.structs.replace(source, **{name: getattr(other, name) for name in passing})
    assert key_or_none(source, keys) == key_or_none(changed, keys)


@given(sources(platforms=ALL_PLATFORMS), KEYS)
def test_a_key_is_bounded_plain_and_safe(source: Source, keys: ChatKeysConfig) -> None:
    key = key_or_none(source, keys)
    assume(key is not None)
    assert key is not None
    assert key.startswith("agent:")
    assert len(key.encode()) < 2000
    assert is_safe_key(key)
    assert not set(key) & set("/\\\n\0")


@given(sources(), KEYS)
def test_only_a_direct_message_is_never_shared(source: Source, keys: ChatKeysConfig) -> None:
    if source.chat_type == "dm":
        assert not is_shared(source, keys)
    elif source.thread_id:
        assert is_shared(source, keys) != keys.thread_sessions_per_user
    else:
        assert is_shared(source, keys) != keys.group_sessions_per_user


@pytest.mark.parametrize("keys", [PER_PLATFORM, WHATSAPP_BY_CHAT])
def test_by_the_earlier_rules_a_group_is_everybodys(keys: ChatKeysConfig) -> None:
    assert is_shared(at(chat_type="group", chat_id="g"), keys)
    assert not is_shared(at(chat_id="g"), keys)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("agent:main:telegram:dm:99", "agent.main.telegram.dm.99"),
        ("agent:main:slack:group:C0:U1", "agent.main.slack.group.%430.%551"),
        ("a:", "a%3a"),
        (":a", "%3aa"),
        (":", "%3a"),
        ("a::b", "a.%3ab"),
        ("a:::", "a.%3a%3a"),
        ("a.b", "a%2eb"),
        ("con", "%63on"),
        ("nul:x", "%6eul.x"),
        ("console", "console"),
        ("", "%"),
        ("é", "%c3%a9"),
    ],
)
def test_a_file_name(key: str, expected: str) -> None:
    assert file_name_of(key) == expected


def test_a_long_file_name_ends_in_a_digest() -> None:
    names = {file_name_of("agent:" + "x" * 300 + end) for end in ("a", "b")}
    assert len(names) == 2
    assert all(len(name) <= 135 for name in names)


DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
ANY_KEY = st.one_of(
    IDS,
    st.text(":.a%~", max_size=6),
    st.lists(IDS, max_size=3).map(":".join),
    st.sampled_from(sorted(DEVICES)),
    st.text(),
)


@given(ANY_KEY)
def test_a_file_name_is_safe_everywhere(key: str) -> None:
    name = file_name_of(key)
    assert 0 < len(name) <= 135
    assert name.isascii()
    assert name == name.lower()
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789_-.%~")
    assert not name.startswith(".")
    assert not name.endswith(".")
    assert ".." not in name
    assert name.split(".")[0] not in DEVICES
    assert is_safe_id(name)


@given(ANY_KEY, ANY_KEY)
@example("é", "e\u0301")
@example("Ann", "ann")
@example("", "%")
@example("a:b", "a.b")
def test_different_keys_have_different_file_names(one: str, other: str) -> None:
    assert (file_name_of(one) == file_name_of(other)) == (one == other)


@pytest.mark.parametrize("good", ["20260308_170900_1a2b3c4d", "a", "cron_x_1", "a.b", "ä"])
def test_a_safe_id(good: str) -> None:
    assert is_safe_id(good)
    assert is_safe_key(good)


@pytest.mark.parametrize(
    "bad", ["", "..", "a/../b", "a..b", "C:x", "c:", "a\0b", "a\nb", "/a", "\\a", "x" * 3000, "\ud800"]
)
def test_an_id_that_leads_elsewhere(bad: str) -> None:
    assert not is_safe_id(bad)
    assert not is_safe_key(bad)


def test_a_key_may_hold_a_slash_and_an_id_may_not() -> None:
    assert is_safe_key("agent:main:google_chat:group:spaces/AAA")
    assert not is_safe_id("spaces/AAA")
    assert not is_safe_id("a\\b")
    assert not is_safe_id(".")
