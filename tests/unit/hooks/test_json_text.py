from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agents.hooking import Format
from perdure.hooks import json_text
from perdure.hooks.merge import State, install, state, uninstall
from perdure.hooks.merge import edited as places_of_edited
from perdure.hooks.problems import Unreadable, Unsuitable
from tests.unit.hooks.documents import json_texts, plan

PLAN = plan(Format.JSON)


@given(json_texts())
def test_installing_adds_ours_and_nothing_else(text: str) -> None:
    before, after = json_text.load(text), json_text.load(install(PLAN, text))
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    for event in ("Start", "Stop"):
        *rest, ours = after["hooks"][event]
        assert rest == before.get("hooks", {}).get(event, [])
        assert f"'{event}'" in ours["hooks"][0]["command"]
    rest = {name: value for name, value in after.items() if name != "hooks"}
    assert rest == {name: value for name, value in before.items() if name != "hooks"}


@given(json_texts())
def test_uninstalling_restores_every_byte(text: str) -> None:
    assert uninstall(PLAN, install(PLAN, text)) == text


@given(json_texts())
def test_installing_twice_is_installing_once(text: str) -> None:
    once = install(PLAN, text)
    assert install(PLAN, once) == once
    assert state(PLAN, once) is State.INSTALLED
    assert state(PLAN, text) is State.ABSENT


@given(json_texts())
def test_what_another_version_put_there_is_replaced(text: str) -> None:
    older = plan(Format.JSON, "Start", "Gone")
    outdated = install(older, text)
    assert state(PLAN, outdated) is State.OUTDATED
    assert install(PLAN, outdated) == install(PLAN, text)
    assert uninstall(PLAN, outdated) == text


@given(json_texts(), st.sampled_from([None, 2, "\t"]))
def test_ours_is_found_again_after_the_agent_has_rewritten_its_file(text: str, indent: int | str | None) -> None:
    rewritten = json.dumps(json_text.load(install(PLAN, text)), indent=indent, sort_keys=True)
    assert state(PLAN, rewritten) is State.INSTALLED
    assert install(PLAN, rewritten) == rewritten
    left = uninstall(PLAN, rewritten)
    assert left is not None
    assert json_text.load(left) == json_text.load(text)


@given(json_texts(), st.text('{}[],:"/*\\ \n\tae01-.', max_size=6), st.integers(0, 200))
@settings(max_examples=300)
def test_a_text_is_read_as_json_is_or_not_at_all(text: str, noise: str, place: int) -> None:
    damaged = text[:place] + noise + text[place:]
    try:
        data = json_text.load(damaged)
    except Unreadable:
        return
    try:
        assert uninstall(PLAN, install(PLAN, damaged)) == damaged
    except Unsuitable:
        assert json_text.load(damaged) == data


def test_a_file_that_is_made_goes_again() -> None:
    made = install(PLAN, None)
    assert made.startswith('{\n  "hooks": {\n    "Start": [\n')
    assert made.endswith("}\n")
    assert uninstall(PLAN, made) is None


def test_what_was_added_meanwhile_stays() -> None:
    made = install(PLAN, None).replace('{\n  "hooks"', '{\n  "model": "x", // mine\n  "hooks"')
    assert uninstall(PLAN, made) == '{\n  "model": "x" // mine\n}\n'
    text = '{\n  "hooks": {}\n}'
    more = install(PLAN, text).replace('"Stop": [', '"Stop": [{"mine": 1}, ')
    assert uninstall(PLAN, more) == '{\n  "hooks": {"Stop": [{"mine": 1}]}\n}'


def test_comments_of_others_stay_where_they_are() -> None:
    text = '{\n  "a": 1 // about a\n  // at the end\n}\n'
    assert install(PLAN, text).startswith('{\n  "a": 1, // about a\n  "hooks": {\n')
    assert install(PLAN, text).endswith("\n  }\n  // at the end\n}\n")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1, column 1, where a value was expected"),
        ("{\n  'a': 1\n}", "line 2, column 3, where a name in quotes was expected"),
        ('{"a": 1,}', "line 1, column 9, where a name in quotes was expected"),
        ('{"a": 1 "b": 2}', "line 1, column 9, where a comma or } was expected"),
        ('{"a" 1}', "where a colon was expected"),
        ('{"a": 1', "where a comma or } was expected"),
        ('{"a": "1\n"}', "line 1, column 7, where a text that ends on its line was expected"),
        ('{"a": "\\x"}', "where a value that means something was expected"),
        ('{"a": ' + "1" * 5000 + "}", "where a value that means something was expected"),
        ("{} x", "where nothing more was expected"),
        ("{} /* x", "where nothing more was expected"),
        ('{"a": nan}', "where a value was expected"),
        ("[" * 100000, "nested too deeply"),
    ],
)
def test_what_is_not_json_is_refused_with_the_place(text: str, place: str) -> None:
    for work in (install, uninstall):
        with pytest.raises(Unreadable, match=place.replace("}", "\\}").replace("{", "\\{")):
            work(PLAN, text)
    assert state(PLAN, text) is State.UNREADABLE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "a content that is no object"),
        ('{"hooks": []}', "a 'hooks' that is no object"),
        ('{"hooks": "x"}', "a 'hooks' that is no object"),
        ('{"hooks": {"Start": {}}}', "a 'hooks.Start' that is no list"),
        ('{"hooks": {"Start": null}}', "a 'hooks.Start' that is no list"),
        ('{"hooks": {}, "hooks": {}}', "names 'hooks' twice"),
    ],
)
def test_what_has_another_shape_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unsuitable, match=why):
        install(PLAN, text)
    assert uninstall(PLAN, text) == text


def test_an_entry_somebody_edited_is_left_alone_and_the_others_are_not() -> None:
    edited = install(PLAN, "{}").replace("it's", "it was", 1)
    assert state(PLAN, edited) is State.EDITED
    assert places_of_edited(PLAN, edited) == ["hooks.Start[0]"]
    assert install(PLAN, edited) == edited
    left = uninstall(PLAN, edited)
    assert left is not None
    assert set(json.loads(left)["hooks"]) == {"Start"}
    assert "it was" in left
    assert uninstall(PLAN, left) == left
    again = json.loads(install(PLAN, left))["hooks"]
    assert {event: len(groups) for event, groups in again.items()} == {"Start": 1, "Stop": 1}
    assert "it was" in again["Start"][0]["hooks"][0]["command"]
    assert places_of_edited(PLAN, install(PLAN, "{}")) == places_of_edited(PLAN, None) == []


def test_a_lot_of_space_takes_no_time() -> None:
    """A search that begins anew at every space would not come to an end here."""
    space = " " * 300_000
    for text in (f'{{"a":{space}1, "hooks": {{}}}}', f'{{"hooks": {{}},{space}"a": 1}}', f"{{{space}}}"):
        assert uninstall(PLAN, install(PLAN, text)) == text
