"""`perdure chats`: what whoever runs the store sees of a gateway's chats, and can do with them."""

from __future__ import annotations

import os
from datetime import datetime

import pytest
from msgspec.structs import replace

from perdure.chats.source import register_platform
from perdure.cli.chats import VERBS
from perdure.model.chat import Chat, CloseReason, Source
from tests.acceptance.gateway import ANN, Gateway
from tests.acceptance.kit import Fields, configure, has_fields, only_json, sentence, wait_for
from tests.acceptance.watching import watching
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_source, a_turn
from tests.perdure_cli import Perdure

NONE = type(None)
BOB = a_source("bob", chat_id="7", user_name="Bob")
GROUP = Source(platform="slack", chat_id="C0", chat_type="group", chat_name="ops", user_id="U1", user_name="Cem")
#: Put together here, so that no scanner takes this file for a leak.
KEY = "sk-" + "proj-" + "x9Y" * 12

CHAT: Fields = {
    "id": str,
    "key": str,
    "title": (str, NONE),
    "platform": str,
    "where": str,
    "source": dict,
    "shared": bool,
    "open": bool,
    "suspended": bool,
    "opened_at": str,
    "used_at": str,
    "closed_at": (str, NONE),
    "close_reason": (str, NONE),
    "owed": bool,
    "follows": (str, NONE),
    "kinship": (str, NONE),
    "turns": int,
    "model": (str, NONE),
    "tokens": dict,
    "by_model": dict,
}


@pytest.fixture
def gateway(private_home: PrivateHome) -> Gateway:
    """A gateway that was used three hours ago."""
    return Gateway(private_home)


def listed(perdure: Perdure, *args: str) -> list[str]:
    """Return the ids of the chats that are listed."""
    return [row["id"] for row in only_json(perdure.ok("chats", "ls", *args, "--json"))["chats"]]


# --- ls


def test_ls_lists_open_chats_with_all_fields_and_others_when_asked(perdure: Perdure, gateway: Gateway) -> None:
    first = gateway.open(ANN, "hello", title="Tea")
    gateway.clock.later(minutes=1)
    second = gateway.open(ANN, force_new=True)
    gateway(lambda chats: chats.add_tokens(second, "big", input=10, output=5))
    gateway.clock.later(minutes=75)
    group = gateway.open(GROUP)
    rows = only_json(perdure.ok("chats", "ls", "--all", "--json"))["chats"]
    assert [row["id"] for row in rows] == [group, second, first]
    for row in rows:
        has_fields(row, CHAT)
    assert (rows[2]["title"], rows[2]["turns"], rows[2]["open"], rows[2]["close_reason"]) == ("Tea", 1, False, "asked")
    assert rows[1]["follows"] == first
    assert rows[1]["by_model"] == {"big": {"input": 10, "output": 5, "total": 15}}
    assert listed(perdure) == listed(perdure, "--open") == [group, second]
    assert listed(perdure, "--closed") == [first]
    assert listed(perdure, "--all", "--limit", "2") == [group, second]
    assert listed(perdure, "--all", "--limit", "1", "--platform", " Telegram") == [second]
    assert listed(perdure, "--all", "--user", "Ann") == listed(perdure, "--all", "--user", "ann") == [second, first]
    assert listed(perdure, "--user", "U1", "--platform", "telegram") == []
    assert listed(perdure, "--active", "150") == [group]
    text = perdure.ok("chats", "ls", "--all").out
    assert [line.split()[0] for line in text.splitlines()[2:]] == [group, second, first]
    assert "group: ops" in text
    assert "closed: asked" in text
    assert "1 h ago" in text


def test_before_there_are_any_people_are_told(perdure: Perdure) -> None:
    assert "no open chat" in perdure.ok("chats", "ls").out
    assert only_json(perdure.ok("chats", "ls", "--json")) == {"chats": []}
    assert only_json(perdure.ok("chats", "search", "tea", "--json")) == {"found": []}
    assert only_json(perdure.ok("chats", "prune", "--json"))["forgotten"] == []


# --- which one is meant


def test_a_target_is_an_id_its_beginning_a_title_or_a_key(perdure: Perdure, gateway: Gateway) -> None:
    id = gateway.open(ANN, "hello", title="My Project")
    for target in (id, id[:-2], "My Project", "agent:main:telegram:dm:99"):
        assert only_json(perdure.ok("chats", "show", target, "--json"))["chat"]["id"] == id
    gateway.clock.later(minutes=1)
    branch = gateway(lambda chats: chats.branch(ANN, id)).id
    assert only_json(perdure.ok("chats", "show", "My Project", "--json"))["chat"]["id"] == branch


@pytest.mark.parametrize("verb", ["show", "title", "resume", "reset"])
def test_several_that_may_be_meant_are_named_and_none_is_not_found(
    perdure: Perdure, gateway: Gateway, verb: str
) -> None:
    ids = [gateway.open(source, title="Plans") for source in (ANN, BOB)]
    ran = perdure("chats", verb, "Plans", "--json")
    assert ran.code == 2
    assert all(id in sentence(ran) for id in ids)
    assert sorted(only_json(ran)["error"]["chats"]) == sorted(ids)
    for absent in ("plans", "", os.fsdecode(b"\xff"), "x\u202ey"):
        ran = perdure("chats", verb, absent, "--json")
        assert ran.code == 3, ran
        assert "\u202e" not in sentence(ran)
    assert sorted(listed(perdure)) == sorted(ids)


# --- show


def test_show_gives_what_was_said_and_what_is_known(perdure: Perdure, gateway: Gateway) -> None:
    first = gateway.open(ANN, *[f"number {n}" for n in range(1, 31)], title="Tea")
    gateway(lambda chats: chats.add_tokens(first, "big", input=10, output=5))
    gateway.clock.later(minutes=1)
    second = gateway(lambda chats: chats.compress(first, [a_turn("in short")])).id
    answer = only_json(perdure.ok("chats", "show", first, "--json"))
    assert [turn["content"] for turn in answer["turns"]] == [f"number {n}" for n in range(11, 31)]
    assert answer["continued_in"] == second
    assert len(only_json(perdure.ok("chats", "show", first, "--all", "--json"))["turns"]) == 30
    assert [
        turn["position"] for turn in only_json(perdure.ok("chats", "show", first, "--turns", "2", "--json"))["turns"]
    ] == [29, 30]
    after = only_json(perdure.ok("chats", "show", second, "--json"))
    assert after["lineage"] == [{"id": first, "kinship": "continuation", "title": "Tea", "kept": True}]
    text = perdure.ok("chats", "show", first, "--turns", "1").out
    assert "    number 30\n" in text
    assert "number 29" not in text
    assert "30, the last 1 below" in text
    assert "big: 15 (10 in, 5 out)" in text
    assert f"goes on   in {second}" in text
    assert "closed: compressed" in text


def test_show_says_which_jobs_keep_a_chat_from_ending_by_itself(
    perdure: Perdure, gateway: Gateway, private_home: PrivateHome
) -> None:
    chat = gateway.open(ANN, "run it")
    key = gateway(lambda chats: chats.store.get_chat(chat).key)
    job = only_json(perdure.ok("jobs", "run", "--owner", key, "--json", "--", "sleep", "600"))["job"]
    try:
        (shown,) = only_json(perdure.ok("chats", "show", chat, "--json"))["jobs"]
        assert (shown["id"], shown["keeps_open"]) == (job, True)
        assert f"jobs      {job}, since" in perdure.ok("chats", "show", chat).out
        configure(private_home, "[chats.reset]\njob_max_age_hours = 0.00001\n")
        # One that was forgotten keeps nothing for ever.
        wait_for(lambda: not only_json(perdure.ok("chats", "show", chat, "--json"))["jobs"][0]["keeps_open"], "its age")
        assert "too old to keep it from ending" in perdure.ok("chats", "show", chat).out
    finally:
        perdure("jobs", "kill", job)
    assert only_json(perdure.ok("chats", "show", chat, "--json"))["jobs"] == []


def test_what_was_taken_back_is_shown_only_when_asked_for(perdure: Perdure, gateway: Gateway) -> None:
    id = gateway.open(ANN, *map(str, range(1, 11)))
    gateway(lambda chats: chats.rewrite(id, 3, a_turn("again")))
    shown = only_json(perdure.ok("chats", "show", id, "--turns", "3", "--json"))["turns"]
    assert [turn["content"] for turn in shown] == ["1", "2", "again"]
    hidden = only_json(perdure.ok("chats", "show", id, "--all", "--hidden", "--json"))["turns"]
    assert [turn["content"] for turn in hidden if turn["hidden"]] == [str(n) for n in range(3, 11)]
    text = perdure.ok("chats", "show", id, "--hidden").out
    assert text.count("(taken back)") == 8


def test_what_strangers_wrote_does_nothing_to_a_terminal(perdure: Perdure, gateway: Gateway) -> None:
    evil = "\x1b]0;x\x07\u202egnp\x9b31m"
    source = a_source("e", chat_id="5", user_name=evil, chat_name=evil, chat_topic=evil)
    id = gateway.open(
        source, f"{evil}\n[9] assistant  forged\r\n\ud83d", a_turn(evil, evil, tool_name=evil, model=evil)
    )
    gateway(lambda chats: chats.add_tokens(id, evil, input=1))
    for args in (["ls"], ["show", id], ["search", "forged"], ["resume", id], ["reset", id], ["prune"]):
        ran = perdure.ok("chats", *args)
        assert not {char for char in ran.out + ran.err if not char.isprintable() and char != "\n"}, args
        assert "\n[9] assistant" not in ran.out
    only_json(perdure.ok("chats", "show", id, "--json"))


def test_keys_and_tokens_are_shown_nowhere(perdure: Perdure, gateway: Gateway) -> None:
    long = "so it goes " * 20
    call = {"function": {"name": "login", "arguments": '{"password": "hunter2!"}'}}
    source = a_source("ann", chat_id="99", user_name=f"Ann {KEY}")
    id = gateway.open(
        source,
        f"{long} the key is {KEY} tail {long}",
        a_turn("calling", "assistant", tool_calls=(call,), extra={"api_key": "hunter3!"}),
        title=f"about {KEY}",
    )
    gateway(lambda chats: chats.store.change_chat(id, _with_extra))
    forms = [[*args, *form] for args in _SHOWING for form in ([], ["--json"])]
    for args in [*forms, ["reset", "ID"]]:
        out = perdure.ok("chats", *(id if word == "ID" else word for word in args)).out
        assert KEY[:12] not in out, args
        assert KEY[-12:] not in out, args
        assert "hunter" not in out, args


_SHOWING = (["ls"], ["show", "ID"], ["search", "tail"], ["search", "login"], ["title", "ID"])


def test_what_is_found_is_hidden_by_the_names_of_fields_as_it_is_shown(perdure: Perdure, gateway: Gateway) -> None:
    secret = "correcthorse" + "battery"
    found = {"host": "dbhost", "login": {"password": secret}, "args": ["--token", secret]}
    id = gateway.open(ANN, a_turn(found, "tool"), a_turn("fine", "assistant", tool_calls=({"api_key": secret},)))
    for args in (["show", id], ["search", "dbhost"], ["search", "fine"], ["search", secret]):
        for form in ([], ["--json"]):
            assert secret not in perdure.ok("chats", *args, *form).out, (args, form)
    (row,) = only_json(perdure.ok("chats", "search", "dbhost", "--json"))["found"]
    assert [row["snippet"][start:end] for start, end in row["marks"]] == ["dbhost"]


@pytest.mark.parametrize("args", [["ls"], ["search", "tea"], ["prune", "--older-than", "1d"]])
def test_a_platform_nobody_knows_is_a_mistake(perdure: Perdure, gateway: Gateway, args: list[str]) -> None:
    gateway.open(ANN, "tea")
    ran = perdure("chats", *args, "--platform", "telegran")
    assert (ran.code, ran.out) == (2, "")
    assert "telegram may be meant" in sentence(ran)
    # One that a gateway has registered for itself is one.
    register_platform("parley")
    gateway.open(replace(ANN, platform="parley"), "tea")
    perdure.ok("chats", *args, "--platform", "parley")


def test_the_mirror_is_not_made_where_the_store_is(perdure: Perdure, private_home: PrivateHome) -> None:
    ran = perdure("chats", "mirror", "--to", private_home.state)
    assert ran.code == 2
    assert "a directory of its own" in sentence(ran)


def test_an_export_makes_no_directories(perdure: Perdure, gateway: Gateway, private_home: PrivateHome) -> None:
    id, missing = gateway.open(ANN, "tea"), os.path.join(private_home.state, "mistyped")
    ran = perdure("chats", "export", id, "--output", os.path.join(missing, "deep", "x.jsonl"))
    assert ran.code == 1
    assert "no such directory" in sentence(ran).lower()
    assert not os.path.exists(missing)


def _with_extra(chat: Chat) -> Chat:
    return replace(chat, extra={"auth": {"token": "hunter4!"}, "note": "fine"})


# --- search


def test_search_finds_by_rank_and_filters(perdure: Perdure, gateway: Gateway) -> None:
    once = gateway.open(ANN, "some tea, and then something else altogether that is long", title="Drinks")
    gateway.clock.later(minutes=90)
    often = gateway.open(BOB, "tea tea tea")
    gateway(lambda chats: chats.append(often, a_turn("no tea left", "assistant", at=gateway.clock())))

    def found(*args: str) -> list[tuple[str, int]]:
        rows = only_json(perdure.ok("chats", "search", "--json", *args))["found"]
        return [(row["chat"], row["position"]) for row in rows]

    assert found("tea")[0] == (often, 1)
    assert sorted(found("tea")) == sorted([(often, 1), (often, 2), (once, 1)])
    assert found("tea", "something") == found("tea some*", "--chat", "Drinks") == [(once, 1)]
    assert found("tea", "--role", "assistant") == [(often, 2)]
    assert found("tea", "--user", "ann") == found("tea", "NOT", "left", "--until", "2h") == [(once, 1)]
    assert found("tea", "--", "-tea", "-left") == []
    assert found('"tea left"', "--since", "2h") == [(often, 2)]
    assert found("tea", "--platform", "slack") == []
    assert len(found("tea", "--limit", "2")) == 2
    (row,) = only_json(perdure.ok("chats", "search", "something", "--json"))["found"]
    ((start, end),) = row["marks"]
    assert row["snippet"][start:end] == "something"
    assert (row["title"], row["role"], row["where"]) == ("Drinks", "user", "DM with Ann")
    text = perdure.ok("chats", "search", "something").out
    assert once in text
    assert "\x1b" not in text
    coloured = perdure.ok("chats", "search", "something", env={"FORCE_COLOR": "1", "COLUMNS": "20"}).out
    assert "\x1b[1;7msomething\x1b[0m" in coloured
    assert perdure.ok("chats", "search", "coffee").out == "Nothing was found.\n"


# --- title


def test_titles_are_printed_given_and_taken_away(perdure: Perdure, gateway: Gateway) -> None:
    id, other = gateway.open(ANN), gateway.open(BOB)
    ran = perdure.ok("chats", "title", id)
    assert (ran.out, "no title" in ran.err) == ("", True)
    assert perdure.ok("chats", "title", id, "My\u200b  Project").out == "My Project\n"
    assert perdure.ok("chats", "title", "My Project").out == "My Project\n"
    # Another person's may be called the same.
    perdure.ok("chats", "title", other, "My Project")
    gateway.clock.later(minutes=1)
    again = gateway.open(ANN, force_new=True)
    ran = perdure("chats", "title", again, "My Project", "--json")
    assert ran.code == 2
    assert id in sentence(ran)
    assert only_json(perdure.ok("chats", "title", id, "--clear", "--json")) == {"id": id, "title": None}
    perdure.ok("chats", "title", again, "My Project")
    for wrong in (["x" * 101], [" \u200b "], ["a", "--clear"], ["a", "b"]):
        assert perdure("chats", "title", again, *wrong).code == 2
    assert perdure.ok("chats", "title", again).out == "My Project\n"


# --- resume and reset


def test_resume_makes_a_chat_the_open_one_and_reset_begins_another(perdure: Perdure, gateway: Gateway) -> None:
    first = gateway.open(ANN, "hello", title="Tea")
    gateway.clock.later(minutes=1)
    second = gateway.open(ANN, force_new=True)
    answer = only_json(perdure.ok("chats", "resume", "Tea", "--json"))
    assert (answer["chat"]["id"], answer["closed"], answer["changed"]) == (first, second, True)
    assert gateway(lambda chats: chats.open(ANN)).id == first
    assert "open already" in perdure.ok("chats", "resume", first).out
    reset = only_json(perdure.ok("chats", "reset", "Tea", "--json"))
    assert (reset["closed"]["id"], reset["closed"]["close_reason"]) == (first, "asked")
    assert (reset["begun"]["follows"], reset["begun"]["open"]) == (first, True)
    assert gateway(lambda chats: chats.open(ANN)).id == reset["begun"]["id"]
    ran = perdure("chats", "reset", first, "--json")
    assert ran.code == 1
    assert reset["begun"]["id"] in sentence(ran)
    said = perdure.ok("chats", "reset", reset["begun"]["id"]).out
    assert reset["begun"]["id"] in said
    assert listed(perdure)[0] in said


def test_a_chat_that_was_made_shorter_is_resumed_where_it_goes_on(perdure: Perdure, gateway: Gateway) -> None:
    first = gateway.open(ANN, "hello")
    gateway.clock.later(minutes=1)
    second = gateway(lambda chats: chats.compress(first, [a_turn("in short")])).id
    gateway.clock.later(minutes=1)
    gateway.open(ANN, force_new=True)
    assert only_json(perdure.ok("chats", "resume", first, "--json"))["chat"]["id"] == second


def test_nobody_gets_to_read_anothers_chat_by_a_slip_of_the_key(perdure: Perdure, gateway: Gateway) -> None:
    mine = gateway.open(ANN, "my own words")
    theirs = gateway.open(BOB, "hello")
    key = "agent:main:telegram:dm:7"
    ran = perdure("chats", "resume", mine, "--key", key, "--json")
    assert ran.code == 6
    assert "--anyway" in sentence(ran)
    assert gateway(lambda chats: chats.open(BOB)).id == theirs
    assert perdure("chats", "resume", mine, "--key", "agent:main:telegram:dm:unknown").code == 3
    assert perdure("chats", "resume", mine, "--anyway").code == 2
    copy = only_json(perdure.ok("chats", "resume", mine, "--key", key, "--anyway", "--json"))
    assert (copy["resumed"], copy["closed"]) == (mine, theirs)
    there = gateway(lambda chats: chats.open(BOB))
    assert (there.id, there.follows) == (copy["chat"]["id"], mine)
    assert gateway(lambda chats: chats.open(ANN)).id == mine


def test_a_chat_goes_on_under_the_key_its_conversation_has_now(perdure: Perdure, gateway: Gateway) -> None:
    id = gateway(lambda chats: chats.store.begin_chat(_of_earlier_rules(gateway.clock()))).id
    answer = only_json(perdure.ok("chats", "resume", id, "--key", "agent:main:telegram:dm:99", "--json"))
    assert (answer["chat"]["id"], answer["closed"]) == (id, None)
    assert gateway(lambda chats: chats.open(ANN)).id == id


def _of_earlier_rules(at: datetime) -> Chat:
    return Chat(id="20250101_000000_old", key="agent:main:telegram:dm", source=ANN, opened_at=at, touched_at=at)


# --- prune


def test_prune_deletes_what_is_old_and_says_so_first(perdure: Perdure, gateway: Gateway) -> None:
    gateway.clock.later(days=-200)
    old = gateway.open(ANN, "long ago", title="Old")
    gateway.clock.later(minutes=1)
    current = gateway.open(ANN, force_new=True)
    owed = gateway.open(BOB, "to be handed on")
    gateway(lambda chats: chats.store.change_chat(owed, _closed_by_itself))
    shortened = gateway.open(GROUP, "the beginning")
    gateway.clock.later(minutes=1)
    tip = gateway(lambda chats: chats.compress(shortened, [a_turn("in short")])).id

    dry = only_json(perdure.ok("chats", "prune", "--older-than", "12w", "--dry-run", "--json"))
    assert dry["dry_run"] is True
    assert [row["id"] for row in dry["forgotten"]] == [old]
    assert dry["kept"] == {"owed": [owed], "busy": [], "continued": [shortened], "changed": []}
    assert "would delete 1 chat with 1 turn" in perdure.ok("chats", "prune", "--dry-run").out
    assert only_json(perdure.ok("chats", "prune", "--older-than", "300", "--json"))["forgotten"] == []
    assert only_json(perdure.ok("chats", "prune", "--platform", "slack", "--json"))["forgotten"] == []
    assert len(listed(perdure, "--all")) == 5

    said = perdure.ok("chats", "prune", "--older-than", "30d").out
    assert old in said
    assert "Deleted 1 chat with 1 turn" in said
    assert set(listed(perdure, "--all")) == {current, owed, shortened, tip}
    shown = only_json(perdure.ok("chats", "show", current, "--json"))
    assert shown["lineage"] == [{"id": old, "kinship": "successor", "title": None, "kept": False}]
    assert "not kept any more" in perdure.ok("chats", "show", current).out
    assert only_json(perdure.ok("check", "--json"))["ok"]
    # Where no gateway hands anything on, nothing waits for it.
    assert only_json(perdure.ok("chats", "prune", "--owed", "--json"))["forgotten"][0]["id"] == owed


def test_prune_leaves_what_jobs_were_begun_in(perdure: Perdure, gateway: Gateway) -> None:
    gateway.clock.later(days=-200)
    busy = gateway.open(ANN, "run it")
    key = gateway(lambda chats: chats.store.get_chat(busy).key)
    gateway.open(ANN, force_new=True)
    job = only_json(perdure.ok("jobs", "run", "--owner", key, "--json", "--", "sleep", "600"))["job"]
    try:
        for args in (["--dry-run"], []):
            answer = only_json(perdure.ok("chats", "prune", *args, "--json"))
            assert (answer["forgotten"], answer["kept"]["busy"]) == ([], [busy])
        assert "jobs of the conversation are running" in perdure.ok("chats", "prune").out
    finally:
        perdure("jobs", "kill", job)
    assert [row["id"] for row in only_json(perdure.ok("chats", "prune", "--json"))["forgotten"]] == [busy]


def test_chats_that_were_kept_long_enough_go_while_the_daemon_watches_and_only_then(
    perdure: Perdure, gateway: Gateway, private_home: PrivateHome
) -> None:
    gateway.clock.later(days=-10)
    old = gateway.open(ANN, "long ago")
    current = gateway.open(ANN, force_new=True)
    mirror = os.path.join(private_home.home, "mirror")
    configure(private_home, f"[chats]\nlegacy_dir = '{mirror}'\n")
    perdure.ok("chats", "mirror")
    assert os.path.exists(f"{mirror}/{old}.jsonl")
    configure(private_home, f"[chats]\nkeep_days = 7\nlegacy_dir = '{mirror}'\n")
    assert set(listed(perdure, "--all")) == {old, current}
    with watching(perdure, "--no-api") as watcher:
        watcher.wait_for(lambda: listed(perdure, "--all") == [current], "the old one to be gone")
        watcher.wait_for(lambda: not os.path.exists(f"{mirror}/{old}.jsonl"), "its mirror to be gone")


def _closed_by_itself(chat: Chat) -> Chat:
    return replace(chat, closed_at=chat.touched_at, close_reason=CloseReason.IDLE)


def test_how_old_is_configured_or_said(perdure: Perdure, gateway: Gateway, private_home: PrivateHome) -> None:
    gateway.clock.later(days=-10)
    gateway.open(ANN, "hello")
    gateway.open(ANN, force_new=True)

    def would_go() -> int:
        return len(only_json(perdure.ok("chats", "prune", "--dry-run", "--json"))["forgotten"])

    assert would_go() == 0
    configure(private_home, "[chats]\nprune_days = 7\n")
    assert would_go() == 1
    configure(private_home, "[chats]\nprune_days = 0\n")
    assert perdure("chats", "prune").code == 2


# --- wrong usage, and stores that cannot be written


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["bogus"],
        ["ls", "--open", "--all"],
        ["ls", "--limit", "0"],
        ["show"],
        ["show", "a", "--turns", "1", "--all"],
        ["search"],
        ["search", "-"],
        ["search", "a", "--since", "yesterday"],
        ["search", "a", "--since", "1d", "--until", "2d"],
        ["reset", "a", "b"],
        ["prune", "--older-than", "0"],
        ["prune", "--older-than", "-3"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_sentence_and_code_2(perdure: Perdure, args: list[str]) -> None:
    ran = perdure("chats", *args, "--json")
    assert ran.code == 2, ran
    assert only_json(ran)["error"]["message"] in sentence(ran)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(perdure: Perdure, verb: str) -> None:
    out = perdure.ok("chats", verb, "--help").out
    assert f"perdure chats {verb}" in out
    assert VERBS[verb][1] in out
    assert "--json" in out
