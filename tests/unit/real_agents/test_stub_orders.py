"""How orders are taken out of a prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.real_agents.stub_orders import BadOrder, Call, Orders, filled, parse, pieces, tool_call

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab \"'{}[]é"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.text().filter(lambda text: "[[" not in text))
def test_a_prompt_without_orders_is_itself(text: str) -> None:
    assert parse(text) == Orders(said=" ".join(text.split()))


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_any_input_reaches_its_tool(value: dict[str, Any]) -> None:
    orders = parse(f"please [[call=Ask_User {json.dumps(value)}]] now")
    assert orders.calls == (Call("Ask_User", value),)
    assert orders.said == "please now"


def test_several_orders_are_taken_apart() -> None:
    orders = parse("a [[delay=1.5]]b [[slow=2]] [[long=9]] [[usage=7]] [[escalate]] [[error=503*3]] c")
    assert orders == Orders(said="a b c", delay=1.5, slow=2.0, long=9, usage=7, escalate=True, status=503, times=3)


@pytest.mark.parametrize("text", ["[[ -f x ]] && true", "[[delay=3", "[[unknown=3]]", "a[[0]]"])
def test_brackets_that_order_nothing_are_text(text: str) -> None:
    assert parse(text) == Orders(said=text)


@pytest.mark.parametrize("text", ["[[call=]]", "[[call=x {]]", "[[error=no]]", "[[body={]]", "[[usage=many]]"])
def test_a_bad_order_is_refused(text: str) -> None:
    with pytest.raises(BadOrder):
        parse(text)


@pytest.mark.parametrize(
    ("tool", "fields", "expected"),
    [
        ("Bash", {"command": "string"}, {"command": "ls"}),
        (
            "exec_command",
            {"cmd": "string", "description": "string"},
            {"cmd": "ls", "description": "asked for by the test"},
        ),
        ("shell", {"command": "array"}, {"command": ["bash", "-c", "ls"]}),
        ("run_commands", {"commands": "array"}, {"commands": ["ls"]}),
        (
            "run_shell_command",
            {"command": "string", "is_background": "boolean"},
            {"command": "ls", "is_background": False},
        ),
    ],
)
def test_each_shell_tool_gets_what_it_takes(tool: str, fields: dict[str, str], expected: dict[str, Any]) -> None:
    schema = {"properties": {name: {"type": kind} for name, kind in fields.items()}}
    orders = parse("[[tool=ls]]")
    assert tool_call(orders.calls[0], orders, {"read": {}, tool: schema}) == (tool, expected)


def test_a_tool_is_asked_to_leave_its_sandbox_where_it_has_one() -> None:
    schema = {"properties": {"cmd": {"type": "string"}, "sandbox_permissions": {"type": "string"}}}
    orders = parse("[[tool=ls]] [[escalate]]")
    assert tool_call(orders.calls[0], orders, {"exec_command": schema})[1] == {
        "cmd": "ls",
        "sandbox_permissions": "require_escalated",
    }


@given(st.text(), st.sampled_from([0.0, 1.0]))
def test_the_pieces_are_the_text(text: str, slow: float) -> None:
    assert "".join(pieces(text, slow)) == text


def test_a_schema_is_filled() -> None:
    properties = {"a": {"type": "STRING"}, "b": {"type": "array"}, "c": {"enum": ["x"]}, "d": {"type": "number"}}
    assert filled({"type": "object", "properties": properties}, "t") == {"a": "t", "b": [], "c": "x", "d": 0}
