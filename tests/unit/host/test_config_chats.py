from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import ConfigError
from perdure.host.config_chats import read_chats
from perdure.model.chat import KeyRules, ResetMode, ResetPolicy
from perdure.model.chat_check import mistakes_in_chats
from perdure.model.config import ChatKeysConfig, ChatsConfig, Config
from tests.unit.host.configs import read


def test_nothing_is_reset_and_nobody_shares_a_chat_unless_somebody_says_so() -> None:
    chats = Config().chats
    assert chats.reset.mode is ResetMode.NONE
    assert (chats.keys.rules, chats.keys.group_sessions_per_user) == (KeyRules.ISOLATED, True)
    assert chats.legacy_dir == ""
    assert read("[chats]").chats == chats


def test_everything_that_may_be_set() -> None:
    config = read(
        """
        zone = "Asia/Tokyo"
        [chats]
        zone = "Europe/Berlin"
        platforms = ["zulip"]
        prune_days = 30
        keep_days = 365
        keep_owed = false
        legacy_dir = "~/sessions"
        [chats.keys]
        rules = "whatsapp-by-chat"
        group_sessions_per_user = false
        thread_sessions_per_user = true
        multiplex_profiles = false
        profile = "work"
        [chats.reset]
        mode = "both"
        at_hour = 0
        idle_minutes = 1
        notify = false
        notify_exclude_platforms = ["zulip"]
        job_max_age_hours = 2
        [chats.reset_by_type.group]
        mode = "idle"
        [chats.reset_by_type.forum]
        at_hour = 23
        [chats.reset_by_platform.zulip]
        mode = "daily"
        """
    )
    assert config.chats == ChatsConfig(
        zone="Europe/Berlin",
        platforms=("zulip",),
        prune_days=30,
        keep_days=365,
        keep_owed=False,
        legacy_dir="/home/dev/sessions",
        keys=ChatKeysConfig(
            rules=KeyRules.WHATSAPP_BY_CHAT,
            group_sessions_per_user=False,
            thread_sessions_per_user=True,
            multiplex_profiles=False,
            profile="work",
        ),
        reset=ResetPolicy(
            mode=ResetMode.BOTH,
            at_hour=0,
            idle_minutes=1,
            notify=False,
            notify_exclude_platforms=("zulip",),
            job_max_age_hours=2.0,
        ),
        reset_by_type={"group": ResetPolicy(mode=ResetMode.IDLE), "forum": ResetPolicy(at_hour=23)},
        reset_by_platform={"zulip": ResetPolicy(mode=ResetMode.DAILY)},
    )
    assert isinstance(config.chats.reset_by_platform["zulip"].mode, ResetMode)
    assert isinstance(config.chats.keys.rules, KeyRules)


POLICY_MISTAKES = [
    ("mode = 'weekly'", "mode is 'weekly', and must be none, idle, daily or both"),
    ("mode = ''", "mode is ''"),
    ("at_hour = 24", "at_hour is 24, and must be from 0 to 23"),
    ("at_hour = -1", "at_hour is -1"),
    ("idle_minutes = 0", "idle_minutes is 0, and must be from 1"),
    ("idle_minutes = 99999999", "idle_minutes is 99999999"),
    ("job_max_age_hours = 0", "job_max_age_hours is 0.0, and must be above 0"),
    ("job_max_age_hours = nan", "job_max_age_hours is nan"),
    ("notify_exclude_platforms = ['webhok']", "notify_exclude_platforms has 'webhok', which is no platform"),
]
CONVERSIONS = [
    ("mode = 1", "mode must be a text, not a whole number"),
    ("at_hour = 4.5", "at_hour"),
    ("at_hour = '4'", "at_hour must be a whole number, not a text"),
    ("idel_minutes = 5", "there is no field 'idel_minutes'"),
]
TABLES = ["reset", "reset_by_type.group", "reset_by_platform.telegram"]


def said(text: str) -> list[str]:
    with pytest.raises(ConfigError) as failed:
        read(text)
    lines = failed.value.message.splitlines()
    assert all(line.startswith("The configuration ") and line.endswith(".") for line in lines)
    return [line.partition(" is wrong: ")[2] for line in lines]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("field", "expected"), POLICY_MISTAKES)
def test_every_policy_is_looked_at(table: str, field: str, expected: str) -> None:
    assert [line.startswith(f"chats.{table}.{expected}") for line in said(f"[chats.{table}]\n{field}")] == [True]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("field", "expected"), CONVERSIONS)
def test_every_policy_has_the_fields_there_are(table: str, field: str, expected: str) -> None:
    assert [expected in line and f"[chats.{table}]" in line for line in said(f"[chats.{table}]\n{field}")] == [True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("chats = 5", "chats must be a table"),
        ("[chats]\nreset = 5", "[chats.reset]: it must be a table, not a whole number"),
        ("[chats]\nreset_by_type = 5", "chats.reset_by_type must be tables"),
        ("[chats]\nreset_by_type = {group = 5}", "[chats.reset_by_type.group]: it must be a table"),
        ("[chats]\nkyes = 5", "there is no field 'kyes'"),
        ("[chats]\nzone = 'Mars/Olympus'", "there is no time zone 'Mars/Olympus'"),
        ("[chats]\nprune_days = -1", "chats.prune_days must be from 0 to 100 years"),
        ("[chats]\nkeep_days = -1", "chats.keep_days must be from 0 to 100 years"),
        ("[chats]\nkeep_days = 36526", "chats.keep_days must be from 0 to 100 years"),
        ("[chats]\nplatforms = ['Zulip']", "chats.platforms has 'Zulip', which cannot be the name"),
        ("[chats]\nplatforms = ['origin']", "chats.platforms has 'origin'"),
        ("[chats]\nplatforms = 'zulip'", "platforms must be a list, not a text"),
        ("[chats.reset_by_platform.telegarm]", "chats.reset_by_platform has 'telegarm', which is no platform"),
        (
            "[chats.keys]\nrules = 'mine'",
            "chats.keys.rules is 'mine', and must be per-platform, whatsapp-by-chat or isolated",
        ),
        ("[chats.keys]\nrules = 5", "[chats.keys]: rules must be a text"),
        ('[chats.keys]\nprofile = "a\\nb"', "chats.keys.profile must be a name"),
        ('[chats.reset_by_type."a\\nb"]\nat_hour = 99', "chats.reset_by_type.'a\\nb'.at_hour is 99"),
    ],
)
def test_each_mistake_gets_one_sentence(text: str, expected: str) -> None:
    lines = said(text)
    assert len(lines) == 1
    assert expected in lines[0]


def test_a_directory_that_depends_on_where_we_are_is_a_mistake() -> None:
    assert said("[chats]\nlegacy_dir = 'here'") == ["chats.legacy_dir must be an absolute path or begin with ~/."]


def test_all_mistakes_are_said_at_once() -> None:
    lines = said(
        "[chats]\nprune_days = -1\n[chats.keys]\nrules = 'x'\n[chats.reset]\nmode = 'x'\nat_hour = 24\n"
        "[chats.reset_by_type.group]\nidle_minutes = 'x'\n[chats.reset_by_platform.slack]\nidle_minutes = 0"
    )
    assert len(lines) == 6


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just("idle"))
NAMES = st.sampled_from([*ResetPolicy.__struct_fields__, *ChatKeysConfig.__struct_fields__, "other"])
TABLE = st.dictionaries(NAMES, PLAIN, max_size=3)


@given(
    st.dictionaries(st.sampled_from(ChatsConfig.__struct_fields__), PLAIN | TABLE | st.dictionaries(st.text(), TABLE))
)
def test_whatever_is_taken_without_a_word_has_no_mistake(table: dict[str, Any]) -> None:
    chats, wrong = read_chats(table)
    assert isinstance(chats, ChatsConfig)
    assert bool(list(mistakes_in_chats(chats))) <= bool(wrong)
    assert not any("\n" in line for line in wrong)
