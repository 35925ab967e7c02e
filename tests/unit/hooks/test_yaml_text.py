from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents.hooking import MARK, Entry, Format, HookFile
from perdure.hooks import yaml_text
from perdure.hooks.merge import State, install, state, uninstall
from perdure.hooks.problems import Unreadable, Unsuitable
from tests.unit.hooks.documents import yaml_texts


def plan(*events: str, command: str = "sh -c 'it'\\''s \"x\" # \\ é'") -> HookFile:
    entries = (Entry(path=("hooks", each), value={"command": f"{command} {each}", "perdure": MARK}) for each in events)
    return HookFile(path="x", format=Format.YAML, entries=tuple(entries))


PLAN = plan("Start", "Stop")


def installed(text: str) -> str | None:
    """Return the text with ours, None where that is refused: what is left then is what there was."""
    try:
        return install(PLAN, text)
    except Unsuitable:
        return None


@given(yaml_texts())
def test_installing_adds_ours_and_nothing_else(text: str) -> None:
    after = installed(text)
    if after is None:
        return
    old, new = yaml.safe_load(text) or {}, yaml.safe_load(after)
    for event in ("Start", "Stop"):
        ours, *rest = new["hooks"][event]
        assert rest == old.get("hooks", {}).get(event, [])
        assert ours["command"] == f"sh -c 'it'\\''s \"x\" # \\ é' {event}"
    assert {**new, "hooks": None} == {**old, "hooks": None}
    assert uninstall(PLAN, after) == text
    assert install(PLAN, after) == after
    assert state(PLAN, after) is State.INSTALLED


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_command_comes_back(command: str) -> None:
    text = install(plan("Start", command=command), None)
    assert yaml.safe_load(text)["hooks"]["Start"][0]["command"] == f"{command} Start"
    text = install(plan("Start", command=command), "hooks: {}")
    assert yaml.safe_load(text)["hooks"]["Start"][0]["command"] == f"{command} Start"


LINES = "\n  Start:\n    - command: "


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("", "hooks:" + LINES),
        ("a: 1\n", "a: 1\n\nhooks:" + LINES),
        ("a: 1", "a: 1\nhooks:" + LINES),
        ("a: 1\r\n", "a: 1\r\n\r\nhooks:\r\n  Start:\r\n"),
        ("# only this\n", "# only this\n\nhooks:" + LINES),
        ("a: |\n  text\n   more\n", "a: |\n  text\n   more\n\nhooks:" + LINES),
        ('a: "b\nhooks: c"\n', 'a: "b\nhooks: c"\n\nhooks:' + LINES),
        ("hooks:\nb: 1\n", "hooks:\n  Start:\n    - command: "),
        ("hooks:  # mine\n", "hooks:  # mine\n  Start:\n"),
        ("hooks: {}\nb: 1\n", 'hooks: {"Start": [{"command": '),
        ("hooks: { Start: [ ] }\n", 'hooks: {"Stop": [{'),
        ("a: .nan\n", "a: .nan\n\nhooks:" + LINES),
        ("hooks:\n    # mine\n    Start:\n    - command: x\n", "hooks:\n    # mine\n    Stop:\n      - command: "),
        ("{a: 1}\n", '{"hooks": {"Start": [{"command": '),
    ],
)
def test_where_it_goes(text: str, beginning: str) -> None:
    after = install(PLAN, text)
    assert after.startswith(beginning)
    assert uninstall(PLAN, after) == text


@pytest.mark.parametrize(
    "text",
    [
        "hooks: null\n",
        "hooks: []\n",
        "hooks:\n  Start: x\n",
        "hooks:\n  Start:\n",
        "- a\n",
        "just text\n",
        "a: &x\n  Start: []\nhooks: *x\n",
        "hooks: &x {}\nb: *x\n",
        "hooks: {}\nhooks: {}\n",
        "a: 1\n...\n",
        "a: &x [*x]\n",
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(Unsuitable):
        install(PLAN, text)
    assert uninstall(PLAN, text) == text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [\n", "line 2, column 1"),
        ("a: b: c\n", "line 1, column 5: mapping values are not allowed"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: but found another document"),
        ("a: \x01\n", "is not YAML"),
        ("a: 2026-13-45\n", "is not YAML"),
    ],
)
def test_what_is_not_yaml_is_refused_with_the_place(text: str, place: str) -> None:
    for work in (install, uninstall):
        with pytest.raises(Unreadable, match=place):
            work(PLAN, text)
    assert state(PLAN, text) is State.UNREADABLE


@given(yaml_texts(), st.sampled_from([30, 80, 1000]))
def test_ours_is_found_again_after_the_agent_has_rewritten_its_file(text: str, width: int) -> None:
    """It dumps its whole configuration: without comments, and long texts over several lines."""
    after = installed(text)
    if after is None:
        return
    rewritten = yaml.dump(yaml.safe_load(after), sort_keys=False, width=width, allow_unicode=True)
    assert state(PLAN, rewritten) is State.INSTALLED
    left = uninstall(PLAN, rewritten)
    old = yaml.safe_load(text)
    assert left is not None
    # A list that was empty and written in lines is nothing now, which is how the agent reads it too.
    assert {**(yaml_text_of(left)), "hooks": None} == {**(old or {}), "hooks": None}
    # A person may write that word too.
    assert left.count("perdure") <= text.count("perdure")


def yaml_text_of(text: str) -> dict[str, object]:
    loaded = yaml_text.load(text)
    return loaded if isinstance(loaded, dict) else {}


def test_what_was_added_meanwhile_stays() -> None:
    more = install(PLAN, "a: 1\n").replace("hooks:\n", "hooks:\n  Other:\n    - command: mine\n") + "z: 2\n"
    assert uninstall(PLAN, more) == "a: 1\n\nhooks:\n  Other:\n    - command: mine\nz: 2\n"
    assert uninstall(PLAN, install(PLAN, "a: 1\n") + "z: 2\n") == "a: 1\nz: 2\n"
    assert uninstall(PLAN, install(PLAN, "a: 1\n").replace("\n\nhooks", "\nhooks") + "z: 2\n") == "a: 1\nz: 2\n"


def test_a_file_that_is_made_goes_again() -> None:
    assert uninstall(PLAN, install(PLAN, None)) is None
    assert uninstall(PLAN, install(PLAN, None) + "# mine\n") == "# mine\n"


def test_an_entry_somebody_edited_is_left_alone_and_the_others_are_not() -> None:
    edited = install(PLAN, "a: 1\n").replace("it'", "that'", 1)
    assert state(PLAN, edited) is State.EDITED
    assert install(PLAN, edited) == edited
    left = uninstall(PLAN, edited)
    assert left is not None
    assert list(yaml.safe_load(left)["hooks"]) == ["Start"]
    again = yaml.safe_load(install(PLAN, left))["hooks"]
    assert {event: len(items) for event, items in again.items()} == {"Start": 1, "Stop": 1}
    assert "that" in again["Start"][0]["command"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: " + "[" * 30_000, "nested too deeply"),
        ("a: " + "[" * 490 + "]" * 490, "nested too deeply"),
        ("a:\n  " + "- " * 490 + "x\n", "nested too deeply"),
        (f"a: '{'x' * (1 << 20)}'\n", "too large"),
        (
            "a: &a [x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1 or str()}'] * 9)}]\n" for n in range(1, 9)),
            "references",
        ),
    ],
)
def test_what_would_break_the_parser_is_not_handed_to_it(text: str, why: str) -> None:
    for work in (install, uninstall):
        with pytest.raises(Unreadable, match=why):
            work(PLAN, text)
    assert state(PLAN, text) is State.UNREADABLE


def test_references_and_depth_as_people_use_them_are_fine() -> None:
    text = "a: &a {x: [1, 2]}\nb: [*a, *a]\nc: " + "[" * 50 + "]" * 50 + "\n"
    assert uninstall(PLAN, install(PLAN, text)) == text
