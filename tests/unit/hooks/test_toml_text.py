from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents.hooking import Format, HookFile, Setting
from perdure.hooks.merge import State, install, state, uninstall
from perdure.hooks.problems import Edited, Unreadable, Unsuitable

PLAN = HookFile(
    path="x",
    format=Format.TOML,
    setting=Setting(table="tui", key="title", value=("activity", "thread-id"), needed="thread-id"),
)
VALUE = ["activity", "thread-id"]

#: Tops of a document, before its first table; tables; and how the table in question may be there.
TOPS = [
    'model = "x"',
    "a.b = 1 # c",
    'text = """\n[tui]\n"""',
    "text = '''\n[tui]\ntitle = 1\n'''",
    "# [tui]",
    "",
    "l = [\n1,\n]",
]
TABLES = [
    "[other]\nx = 1",
    "[[many]]\nx = 1\n[[many]]",
    '[projects."/home/dev/é"]\ntrust = "yes"',
    "[tui.nux]\nx = 1",
    "# c",
]
OURS = [
    "",
    "[tui]",
    "[tui]\nseen = true",
    "[ tui ] # c\nseen = true # d",
    '["tui"]\n\n# e\nseen = [\n1]',
    "  [tui]\n  seen = 1",
]


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """Return a document with or without the table, as somebody or the agent may have written it."""
    parts = draw(st.lists(st.sampled_from(TOPS), unique_by=lambda top: top.split(" ")[0], max_size=3))
    tables = [*draw(st.lists(st.sampled_from(TABLES), unique=True)), draw(st.sampled_from(OURS))]
    text = "\n".join([*parts, *draw(st.permutations(tables))])
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff"])) + text


def load(text: str) -> dict[str, object]:
    return tomllib.loads(text.removeprefix("\ufeff"))


@given(toml_texts())
def test_the_setting_is_added_and_nothing_else(text: str) -> None:
    before, after = load(text), load(install(PLAN, text))
    table = after["tui"]
    assert isinstance(table, dict)
    assert table.pop("title") == VALUE
    assert after == {"tui": {}, **before}


@given(toml_texts())
def test_unsetting_restores_every_byte_and_setting_twice_is_setting_once(text: str) -> None:
    once = install(PLAN, text)
    assert uninstall(PLAN, once) == text
    assert install(PLAN, once) == once
    assert (state(PLAN, text), state(PLAN, once)) == (State.ABSENT, State.INSTALLED)


@given(toml_texts())
def test_what_another_version_set_is_replaced(text: str) -> None:
    older = HookFile(path="x", format=Format.TOML, setting=Setting(table="tui", key="title", value=("x",), needed="x"))
    outdated = install(older, text)
    assert state(PLAN, outdated) is State.OUTDATED
    assert install(PLAN, outdated) == install(PLAN, text)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (None, "[tui]\nLINE2\n"),
        ("", "[tui]\nLINE1\n"),
        ("a = 1\n", "a = 1\n\n[tui]\nLINE1\n"),
        ("a = 1", "a = 1\n[tui]\nLINE1"),
        ("[tui]\nseen = true\n", "[tui]\nLINE0\nseen = true\n"),
        ("[tui]", "[tui]\nLINE0"),
        ("[tui.nux]\nx = 1\n", "[tui.nux]\nx = 1\n\n[tui]\nLINE1\n"),
    ],
)
def test_where_it_goes(text: str | None, after: str) -> None:
    made = install(PLAN, text)
    line = next(line for line in made.splitlines() if line.startswith("title"))
    assert line.startswith('title = ["activity", "thread-id"] # perdure-hook/1 made=')
    count = line.partition("made=")[2][0]
    assert made.replace(line, f"LINE{count}") == after
    assert uninstall(PLAN, made) == text


@pytest.mark.parametrize(
    "text",
    [
        "tui = { seen = true }\n",
        "tui.seen = true\n",
        "tui = 1\n",
        "[[tui]]\nx = 1\n",
        "[tui]\ntitle = []\n",
        "tui.title = ['activity']\n",
    ],
)
def test_what_is_the_owners_or_cannot_be_edited_is_left_alone(text: str) -> None:
    with pytest.raises(Unsuitable):
        install(PLAN, text)
    assert uninstall(PLAN, text) == text
    assert state(PLAN, text) is State.ABSENT


def test_the_owner_is_told_what_to_add() -> None:
    with pytest.raises(Unsuitable, match=r'make it title = \["mine", "thread-id"\] yourself'):
        install(PLAN, '[tui]\ntitle = ["mine"]\n')
    with pytest.raises(Unsuitable, match=r'make it title = \["activity", "thread-id"\] yourself'):
        install(PLAN, "[tui]\ntitle = 1\n")


def test_an_owners_setting_that_will_do_is_enough() -> None:
    text = '[tui]\ntitle = ["thread-id"]\n'
    assert state(PLAN, text) is State.THEIRS
    assert install(PLAN, text) == text
    assert uninstall(PLAN, text) == text


def test_what_came_meanwhile_stays() -> None:
    made = install(PLAN, "a = 1\n") + "seen = true\n\n[other]\nx = 1\n"
    assert uninstall(PLAN, made) == "a = 1\n\n[tui]\nseen = true\n\n[other]\nx = 1\n"
    assert uninstall(PLAN, install(PLAN, "a = 1\n") + "\n[other]\nx = 1\n") == "a = 1\n\n[other]\nx = 1\n"
    assert uninstall(PLAN, install(PLAN, "a = 1") + "\n[other]\nx = 1\n") == "a = 1\n[other]\nx = 1\n"
    assert uninstall(PLAN, install(PLAN, None) + "# mine\n") == "# mine\n"


def test_one_that_was_edited_is_left_alone() -> None:
    edited = install(PLAN, "a = 1\n").replace('"activity"', '"model"')
    assert state(PLAN, edited) is State.EDITED
    for work in (install, uninstall):
        with pytest.raises(Edited, match="a title of perdure's that was edited"):
            work(PLAN, edited)


def test_a_mark_in_somebodys_text_is_not_ours_to_take_out() -> None:
    line = install(PLAN, None).splitlines()[1]
    with pytest.raises(Edited, match=r"outside of \[tui\]"):
        uninstall(PLAN, f"text = '''\n{line}\n'''\n")


def test_what_lost_its_mark_is_not_said_to_be_ours() -> None:
    unmarked = install(PLAN, "a = 1\n").partition(" # perdure-hook")[0] + "\n"
    assert load(unmarked) == {"a": 1, "tui": {"title": VALUE}}
    assert state(PLAN, unmarked) is State.THEIRS
    assert install(PLAN, unmarked) == unmarked
    with pytest.raises(Edited, match="without perdure's mark"):
        uninstall(PLAN, unmarked)


@pytest.mark.parametrize("more", ["", '[tui]\ntitle = ["thread-id"]\n', "[tui]\n"])
def test_our_line_in_another_table_is_not_said_to_be_installed(more: str) -> None:
    moved = more + install(PLAN, None).replace("[tui]", "[profiles.x.tui]")
    assert state(PLAN, moved) is State.EDITED
    for work in (install, uninstall):
        with pytest.raises(Edited, match=r"outside of \[tui\]"):
            work(PLAN, moved)


@pytest.mark.parametrize("text", ["a = \n", "[tui]\n[tui]\n", "x"])
def test_what_is_not_toml_is_refused_with_the_place(text: str) -> None:
    for work in (install, uninstall):
        with pytest.raises(Unreadable, match=r"is not TOML: .*\(at (line|end)"):
            work(PLAN, text)
    assert state(PLAN, text) is State.UNREADABLE
