from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.chats import source as module
from perdure.chats.source import (
    description,
    has_personal_ids,
    local_cli,
    platform_from,
    platforms,
    register_platform,
    source_dict,
    source_from,
)
from perdure.errors import UsageError
from perdure.model.chat import Source
from tests.unit.chats.strangers import sources

EIGHT = {"platform", "chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic"}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_registered", {})


def test_the_platforms_of_both_generations_are_known() -> None:
    assert {"local", "telegram", "discord", "whatsapp", "slack"} <= platforms()
    assert {"whatsapp_cloud", "msgraph_webhook", "wecom_callback", "bluebubbles", "yuanbao", "relay"} <= platforms()
    assert len(platforms()) >= 24


@pytest.mark.parametrize("name", ["telegram", " Telegram ", "TELEGRAM\n"])
def test_a_platform_is_found_however_it_is_spelt(name: str) -> None:
    assert platform_from(name) == "telegram"


@pytest.mark.parametrize("name", ["telegarm", "", "tele gram", "slac\u212a", "x" * 5000, None, 7, ["telegram"], "a\nb"])
def test_a_name_that_is_none_is_said_in_one_sentence(name: object) -> None:
    with pytest.raises(UsageError, match=r"^There is no platform .*\.$") as failed:
        platform_from(name)
    assert len(failed.value.message) < 200
    assert "\n" not in failed.value.message


def test_what_may_have_been_meant_is_said() -> None:
    with pytest.raises(UsageError, match=r"There is no platform 'telegarm'; telegram may be meant\."):
        platform_from("telegarm")


@pytest.mark.usefixtures("registry")
def test_a_registered_platform_is_one_like_the_others() -> None:
    with pytest.raises(UsageError):
        platform_from("zulip")
    assert register_platform(" Zulip ") == "zulip"
    assert register_platform("Zulip", personal_ids=True) == "zulip"
    assert register_platform("telegram", personal_ids=True) == "telegram"
    assert source_from({"platform": "ZULIP", "chat_id": 1}).platform == "zulip"
    assert "zulip" in platforms()
    assert (has_personal_ids("zulip"), has_personal_ids("telegram")) == (True, False)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["", "a:b", "a b", "origin", "Origin", "-a", "é", "a" * 65, "a\n b", "a/b"])
def test_a_name_that_would_mean_something_else_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a platform"):
        register_platform(name)
    assert name.lower() not in platforms()


def test_a_mapping_of_the_first_generation() -> None:
    source = source_from({"platform": "telegram", "chat_id": 12345})
    assert source == Source(platform="telegram", chat_id="12345", chat_type="dm")


def test_a_full_round_trip_with_a_topic() -> None:
    source = Source(platform="discord", chat_id="9", chat_type="channel", chat_topic="Plans", user_name="Ann")
    assert source_from(source_dict(source)) == source


def test_the_eight_keys_are_always_written_and_the_others_only_when_there_is_something_to_say() -> None:
    assert source_dict(local_cli()) == dict.fromkeys(EIGHT) | {
        "platform": "local",
        "chat_id": "cli",
        "chat_name": "CLI terminal",
        "chat_type": "dm",
    }
    full = source_dict(Source(platform="slack", chat_id="C", scope_id="T", auto_thread_created=True, profile=""))
    assert set(full) == EIGHT | {"scope_id", "guild_id", "auto_thread_created"}
    assert (full["scope_id"], full["guild_id"]) == ("T", "T")


@pytest.mark.parametrize(
    ("given_scopes", "expected"),
    [
        ({"scope_id": "s", "guild_id": "g"}, "s"),
        ({"guild_id": "g"}, "g"),
        ({"scope_id": None, "guild_id": 7}, "7"),
        ({"scope_id": "", "guild_id": "g"}, "g"),
        ({}, None),
    ],
)
def test_the_scope_has_two_names_and_one_wins(given_scopes: dict[str, Any], expected: str | None) -> None:
    assert source_from({"platform": "discord", "chat_id": "1", **given_scopes}).scope_id == expected


def test_what_has_to_be_proved_anew_is_neither_written_nor_believed() -> None:
    trusted = Source(platform="slack", chat_id="1", is_bot=True, role_authorized=True, relayed=True)
    assert source_dict(trusted) == source_dict(Source(platform="slack", chat_id="1"))
    forged = {"is_bot": True, "role_authorized": True, "relayed": True, "delivered_via_upstream_relay": True}
    assert source_from({"platform": "slack", "chat_id": "1", **forged}) == Source(platform="slack", chat_id="1")


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({"chat_id": "1"}, "has no platform"),
        ({"platform": "slack"}, "has no chat_id"),
        ({"platform": "slack", "chat_id": None}, "has no chat_id"),
        ({"platform": "nowhere", "chat_id": "1"}, "There is no platform 'nowhere'"),
        ({"platform": "slack", "chat_id": True}, "chat_id that is no text: True"),
        ({"platform": "slack", "chat_id": 1.5}, "chat_id that is no text: 1.5"),
        ({"platform": "slack", "chat_id": "1", "user_name": 5}, "user_name that is no text: 5"),
        ({"platform": "slack", "chat_id": "1", "thread_id": ["1"]}, "thread_id that is no text"),
        ({"platform": "slack", "chat_id": "a\ud800"}, "chat_id that is no text"),
        ({"platform": "slack", "chat_id": "1", "chat_type": ""}, "empty chat_type"),
    ],
)
def test_a_mapping_that_tells_of_no_source(mapping: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as failed:
        source_from(mapping)
    assert failed.value.message.endswith(".")


def test_numbers_are_ids_and_a_broken_name_is_put_right() -> None:
    source = source_from(
        {
            "platform": "telegram",
            "chat_id": -100,
            "user_id": 42,
            "thread_id": 7,
            "chat_name": "a\ud800b",
            "chat_type": None,
        }
    )
    assert (source.chat_id, source.user_id, source.thread_id, source.chat_type) == ("-100", "42", "7", "dm")
    assert source.chat_name == "a\ufffdb"


def _kept(source: Source) -> Source:
    """The source as it is written down: nothing that has to be proved, and of what is only written when true, no ''."""
    empty = {
        name: None
        for name in ("user_id_alt", "chat_id_alt", "parent_chat_id", "message_id", "profile", "scope_id")
        if not getattr(source, name)
    }
    return msgspec.structs.replace(source, is_bot=False, role_authorized=False, relayed=False, **empty)


@given(sources())
def test_every_source_comes_back(source: Source) -> None:
    plain = source_dict(source)
    assert set(plain) >= EIGHT
    assert source_from(plain) == _kept(source)
    assert source_from(msgspec.json.decode(msgspec.json.encode(plain))) == _kept(source)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
FIELDS = st.sampled_from([*Source.__struct_fields__, "guild_id", "other"])


@given(st.dictionaries(FIELDS, JSON), st.booleans())
def test_any_mapping_is_a_source_or_one_sentence(mapping: dict[str, Any], named: bool) -> None:
    if named:
        mapping = {"platform": "slack", "chat_id": "1", **mapping}
    said = ""
    try:
        source = source_from(mapping)
        assert source_from(source_dict(source)) == _kept(source)
    except UsageError as error:
        said = error.message
    assert "\n" not in said
    assert len(said) < 300


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"platform": "local", "chat_name": "x", "thread_id": "1"}, "CLI terminal"),
        ({"user_name": "Ann", "user_id": "7"}, "DM with Ann"),
        ({"user_id": "7"}, "DM with 7"),
        ({}, "DM with user"),
        ({"chat_type": "group", "chat_name": "Team"}, "group: Team"),
        ({"chat_type": "group"}, "group: 9"),
        ({"chat_type": "channel", "chat_name": "news", "thread_id": "17"}, "channel: news, thread: 17"),
        ({"chat_type": "forum", "chat_name": "Talk"}, "Talk"),
        ({"chat_type": "forum", "thread_id": "t"}, "9, thread: t"),
    ],
)
def test_a_description(fields: dict[str, str], expected: str) -> None:
    source = Source(**{"platform": "telegram", "chat_id": "9", **fields})  # type: ignore[arg-type]
    assert description(source) == expected


@given(sources())
def test_every_name_in_a_description_may_be_shown_otherwise(source: Source) -> None:
    shown: list[str] = []

    def mask(text: str) -> str:
        shown.append(text)
        return "*"

    assert set(description(source, mask)) <= set("*DM with user group: channel, thread: CLI terminal")
    if source.platform != "local" and source.thread_id:
        assert source.thread_id in shown
