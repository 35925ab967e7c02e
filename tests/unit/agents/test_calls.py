from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents._calls import all_of, detail_of, details_of, failed_by


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ({"command": "pytest -q", "description": "run"}, "pytest -q"),
        ({"cmd": ["bash", "-lc", "cd x && make"]}, "cd x && make"),
        ({"command": ["git", "commit", "-m", "two words"]}, "git commit -m 'two words'"),
        ({"commands": ["ls -l", "pwd"]}, "ls -l; pwd"),
        ({"file_path": "/home/dev/a.py", "content": "x"}, "/home/dev/a.py"),
        ({"command": "view", "path": "/a.py"}, "view /a.py"),
        ({"command": "str_replace", "path": "/a.py"}, "/a.py"),
        ({"skill": "pdf"}, "pdf"),
        ('{"cmd": "ls"}', "ls"),
        ('{"cmd": "cut o', None),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n", "a.py, b.py"),
        ({"input": "*** Begin Patch\n*** Delete File: a.py\n"}, "a.py"),
        ({"command": "cd x\npytest \\\n  -q &&\nls"}, "cd x; pytest -q && ls"),
        ({"command": "x" * 300}, "x" * 199 + "…"),
        ({"content": "secret"}, None),
        ({}, None),
        (None, None),
        (7, None),
        ({"command": {"a": 1}, "path": 5}, None),
    ],
)
def test_what_a_tool_was_called_with(arguments: object, detail: str | None) -> None:
    assert detail_of(arguments) == detail


@given(
    st.recursive(st.none() | st.booleans() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each))
)
def test_whatever_the_arguments_are_it_is_one_short_line(arguments: object) -> None:
    for given_ in (arguments, {"command": arguments}):
        detail = detail_of(given_)
        assert detail is None or (0 < len(detail) <= 200 and "\n" not in detail)


@pytest.mark.parametrize(
    ("output", "above", "failed"),
    [
        ("Exit code: 0\nWall time: 1 s\nOutput:\nfine", True, False),
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\nExit code: 0", True, True),
        ("Wall time: 1\nOutput:\nExit code: 0", True, None),
        ("Output: Exit Code: 7\nError: (none)\nExit Code: 0\nSignal: 0", False, False),
        ('{"output": "Exit code: 0", "exit_code": 1}', False, True),
        ('{"output": "", "metadata": {"exit_code": 0}}', True, False),
        ('{"output": "exit_code: 0"}', False, None),
        ("all is well", False, None),
        (None, False, None),
    ],
)
def test_only_what_stands_beside_the_output_says_how_a_program_ended(
    output: str | None, above: bool, failed: bool | None
) -> None:
    assert failed_by(output, above=above) is failed


def test_several_calls_in_one_turn_have_a_line_each() -> None:
    assert details_of([("a", "x"), ("b", None), ("c", "y")]) == "x\n\ny"
    assert details_of([("a", None)]) is None
    assert [all_of(each) for each in ([], [False], [False, None], [None, True])] == [None, False, None, True]
