"""Each mistake in a user's agent gets its sentence."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.agent import AgentSpec, ScreenRule
from perdure.model.agent_check import mistakes

GOOD = AgentSpec(
    binaries=("ren",),
    packages=("/@ren/cli/",),
    scripts=("main.js",),
    not_agents=("serve",),
    environment=("REN_HOME",),
    id=r"chat-\d+",
    keep=("-m, --model <name>", "-v", "--dirs <d...>", "--think [level]"),
    drop=("--prompt <text>",),
    named_by=("--resume", "open"),
    resume=("open", "{id}"),
    fresh=("--new={id}",),
    transcripts=("~/.ren/{id}.jsonl", "$REN_HOME/*/{id}.jsonl", "/srv/ren/{id}/log"),
    signs=("title:^ren: ", r"^ren \d"),
    screen=(
        ScreenRule(id="busy.footer", match="esc to stop", state="busy"),
        ScreenRule(id="viewer", region="last", match="^q to close$"),
        ScreenRule(id="ask", region="title", match="\\?$", state="attention", reason="question"),
    ),
)


def test_a_good_one_has_none() -> None:
    assert list(mistakes("ren", GOOD)) == []
    assert list(mistakes("ren_2-b", AgentSpec(binaries=("ren",)))) == []


@pytest.mark.parametrize("name", ["", "Ren", "2ren", "r e n", "ren/x", "a" * 40, "é"])
def test_a_name_that_would_not_do(name: str) -> None:
    assert [each for each in mistakes(name, GOOD) if each.startswith("its name")]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"binaries": ()}, "names no program"),
        ({"binaries": ("/usr/bin/ren",)}, "without directories"),
        ({"binaries": ("",)}, "without directories"),
        ({"binaries": ("-bash",)}, "without directories"),
        ({"binaries": ("r*n",)}, "wildcards"),
        ({"binaries": ("python3.11",)}, "runs other programs"),
        ({"binaries": ("npx",)}, "runs other programs"),
        ({"id": "(?i)[a-f]+"}, "part of another"),
        ({"id": "(?:a+)+b"}, "can take forever"),
        ({"id": "x(?:a|a)*"}, "can take forever"),
        ({"signs": ("(x+x+)+y",)}, "can take forever"),
        ({"resume": ("--open", "chat:{id}")}, "a word of its own"),
        ({"resume": ("-o{id}",)}, "a word of its own"),
        ({"resume": ("--", "{id}")}, "must not hold --"),
        ({"not_agents": ("",)}, "an empty word"),
        ({"not_agents": ("open",)}, "would not be known again"),
        ({"binaries": ("python3",)}, "runs other programs"),
        ({"packages": ("cli",)}, "between slashes"),
        ({"packages": ("/",)}, "between slashes"),
        ({"packages": ()}, "scripts means nothing"),
        ({"id": "("}, "no regular expression"),
        ({"id": ".*"}, "begins with a dash"),
        ({"id": "[-a-z]+"}, "begins with a dash"),
        ({"id": "(a)b"}, "must not capture"),
        ({"signs": ("(",)}, "signs has '(', which is no regular expression"),
        ({"signs": ("ok", "title:[")}, "signs has 'title:[', which is no regular expression"),
        ({"signs": ("",)}, "fits an empty line"),
        ({"signs": ("title:",)}, "fits an empty line"),
        ({"signs": (r"\s*$",)}, "fits an empty line"),
        ({"keep": ("model <name>",)}, "as --help prints them"),
        ({"keep": ("--model NAME",)}, "as --help prints them"),
        ({"drop": ("--",)}, "as --help prints them"),
        ({"resume": ("--resume",)}, "must hold {id} once"),
        ({"fresh": ("{id}", "{id}")}, "must hold {id} once"),
        ({"named_by": ("a b",)}, "neither an option nor a word"),
        ({"environment": ("A-B",)}, "no variable's name"),
        ({"environment": ("REN_HOME", "REN_API_KEY")}, "secrets are never kept"),
        ({"transcripts": ("~/.ren/log",)}, "must hold {id} once"),
        ({"transcripts": ("ren/{id}",)}, "must begin with"),
        ({"transcripts": ("$OTHER/{id}",)}, "does not name OTHER"),
        ({"transcripts": ("~/**/{id}",)}, "a part of one name"),
        ({"transcripts": ("~/../{id}",)}, "a part of one name"),
    ],
)
def test_each_mistake_is_named(change: dict[str, Any], sentence: str) -> None:
    found = list(mistakes("ren", msgspec.structs.replace(GOOD, **change)))
    assert any(sentence in each for each in found), found


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": "Busy!"}, "small words"),
        ({"match": "("}, "match is no regular expression"),
        ({"match": ""}, "match is empty"),
        ({"unless": "["}, "unless is no regular expression"),
        ({"region": "footer"}, "region must be"),
        ({"lines": 0}, "lines must be"),
        ({"lines": 1000}, "lines must be"),
        ({"state": "working"}, "state must be one of"),
        ({"state": "attention"}, "attention needs a reason"),
        ({"state": "idle", "reason": "question"}, "only attention"),
        ({"confidence": 0.0}, "confidence must be"),
        ({"confidence": 1.5}, "confidence must be"),
    ],
)
def test_each_mistake_in_a_screen_rule_is_named(change: dict[str, Any], sentence: str) -> None:
    rule = msgspec.structs.replace(ScreenRule(id="busy", match="x", state="busy"), **change)
    found = list(mistakes("ren", msgspec.structs.replace(GOOD, screen=(rule,))))
    assert any(sentence in each for each in found), found


def test_two_rules_of_one_name_are_named() -> None:
    rule = ScreenRule(id="busy", match="x", state="busy")
    assert list(mistakes("ren", msgspec.structs.replace(GOOD, screen=(rule, rule)))) == [
        "two screen rules are called 'busy'"
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
        r"ses_[A-Za-z0-9]+",
        r"\d{8}_\d{6}_[0-9a-f]{6}",
        r"(?:a|b)c+",
        r"[(+]+\(a+\)+",
        r"(?:T-)?[0-9]+(?:\.[0-9]{1,3}){0,2}",
    ],
)
def test_patterns_that_end_are_let_be(pattern: str) -> None:
    assert list(mistakes("ren", msgspec.structs.replace(GOOD, signs=(pattern + "!",)))) == []


@pytest.mark.parametrize("pattern", [r"(a+)+", r"(?:a*)*b", r"((a+)b)+", r"(a|aa)+$", r"(?:x{1,})*", r"((a|b))*c"])
def test_patterns_that_may_not_are_named(pattern: str) -> None:
    rule = ScreenRule(id="busy", match=pattern, state="busy")
    found = list(mistakes("ren", msgspec.structs.replace(GOOD, screen=(rule,))))
    assert any("forever" in each for each in found)


@given(st.text(alphabet="ab()[]|*+?{},1\\^$.:", max_size=20))
def test_any_text_gets_an_answer(text: str) -> None:
    list(mistakes("ren", msgspec.structs.replace(GOOD, id=text, signs=(text,))))
