from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.compat.json_lines import Path, line_of, path_of

TEXT = """
{ "a": [1,
        {"b\\"}": null , "c": "x"},
        []],

  "d" : {},
  "a2": [ ] ,
  "d": 5
}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ([], 2),
        (["a"], 2),
        (["a", 0], 2),
        (["a", 1], 3),
        (["a", 1, 'b"}'], 3),
        (["a", 2], 4),
        (["a2"], 7),
        (["d"], 8),
        (["a", 9], 2),
        (["d", "deeper"], 8),
        (["missing"], 2),
    ],
)
def test_a_value_is_found_on_its_line(path: Path, line: int) -> None:
    assert line_of(TEXT, path) == line


def test_a_validation_path_is_taken_apart() -> None:
    assert path_of("$.panes[3].pid") == ["panes", 3, "pid"]
    assert path_of("$") == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(before=VALUES, value=VALUES, after=VALUES)
def test_whatever_stands_around_it_a_value_is_found(before: object, value: object, after: object) -> None:
    document = json.dumps({"0": before, "here": {"list": [before, value]}, "1": after}, indent=1)
    marked = json.dumps({"0": before, "here": {"list": [before, "@MARK@"]}, "1": after}, indent=1)
    expected = next(number for number, line in enumerate(marked.split("\n"), 1) if '"@MARK@"' in line)
    assert line_of(document, ["here", "list", 1]) == expected
