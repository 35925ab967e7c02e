"""Documents somebody may have written, and what we put into them."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import strategies as st

from perdure.agents.hooking import MARK, Entry, Format, HookFile

#: Names that may be in the way, and others.
names = st.sampled_from(["hooks", "Start", "Stop", "model", "a b", "é", "", "# x", "// x"])
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
scalars = st.none() | st.booleans() | st.integers(-9, 9) | texts | st.sampled_from(["/* x */", "// y", "[tui]", '"'])


def nested(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return lists and objects of these."""
    return st.lists(children, max_size=3) | st.dictionaries(names, children, max_size=3)


values = st.recursive(scalars, nested, max_leaves=8)
#: Documents with hooks in them more often than by chance.
hooks = st.dictionaries(st.sampled_from(["Start", "Stop", "Other"]), st.lists(values, max_size=3), max_size=3)
documents: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda some, ours: {**some, **({} if ours is None else {"hooks": ours})},
    st.dictionaries(names.filter(lambda name: name != "hooks"), values, max_size=4),
    st.none() | hooks,
)


def entry(event: str, **more: object) -> Entry:
    """Return an entry as settings files have them."""
    command = f": {MARK}; echo \"it's\" '{event}' \\ é"
    return Entry(path=("hooks", event), value={"hooks": [{"type": "command", "command": command, **more}]})


def plan(format: Format, *events: str) -> HookFile:
    """Return a plan for such entries."""
    return HookFile(path="x", format=format, entries=tuple(entry(event) for event in events or ("Start", "Stop")))


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """Return a document as somebody's editor, program or hand may have left it."""
    document = draw(documents)
    indent = draw(st.sampled_from([None, 2, 4, "\t", 0]))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " : ")]))
    text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = commented(text, draw(st.lists(st.sampled_from([" // c, }", " /* [ */", "\n// own line"]), min_size=1)))
    text = draw(st.sampled_from(["", "\n", "// first\n", " "])) + text + draw(st.sampled_from(["", "\n", "\n\n", " "]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff"])) + text


def commented(text: str, comments: list[str]) -> str:
    """Return JSON with comments at the ends of its lines; on one line there is only room for some of them."""
    lines = text.split("\n")
    for number in range(len(lines) - 1):
        lines[number] += comments[number % len(comments)]
    return "\n".join(lines)


@st.composite
def yaml_texts(draw: st.DrawFn) -> str:
    """Return a document as a program may have dumped it, or somebody written it."""
    text = yaml.dump(
        draw(documents),
        default_flow_style=draw(st.sampled_from([False, None, True])),
        indent=draw(st.sampled_from([2, 4])),
        width=draw(st.sampled_from([20, 80, 1000])),
        allow_unicode=draw(st.booleans()),
        explicit_start=draw(st.booleans()),
        default_style=draw(st.sampled_from([None, None, "'", '"', "|"])),
    )
    text = draw(st.sampled_from(["", "# first\n", "\n"])) + text
    text = draw(st.sampled_from([text, text.rstrip("\n"), text + "\n", text + "# last\n", text + "# last"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))
