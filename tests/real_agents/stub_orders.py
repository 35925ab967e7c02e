"""What a prompt orders the stub model to do, in one syntax whatever protocol carries it.

Orders stand in double brackets anywhere in a prompt; the rest of the prompt is echoed.

    [[say=TEXT]]            answer exactly TEXT; otherwise the answer is "STUB-REPLY <n>: <the prompt>"
    [[delay=SECONDS]]       wait before the first token
    [[hold]]                wait before each answer until the test lets it go (`StubModel.let_go`)
    [[long=LINES]]          let so many numbered lines follow the answer
    [[slow=SECONDS]]        spread the text over that time
    [[tool=COMMAND]]        call the agent's shell tool; with several, one after the other. Without tools, write it down
    [[escalate]]            with tool=: ask to run it outside the sandbox, where the tool has such a field
    [[call=NAME {JSON}]]    call any tool with this input
    [[usage=TOKENS]]        claim that the request was so long
    [[error=STATUS]]        answer with that HTTP status, to each attempt; [[error=STATUS*3]]: to the first three
    [[body={JSON}]]         the body of that error, instead of the protocol's own

Once every tool has run, the answer is "STUB-DONE <n>: <what the last one said>", or the text of say=.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

#: Where an order begins. Only these words: `[[ -f x ]]` in a command is a command.
_OPENING = re.compile(r"\[\[(say|delay|hold|long|slow|tool|escalate|call|usage|error|body)(?==|\]\])")
_NAMED = re.compile(r"\s*([\w.-]+)\s*(.*)", re.DOTALL)
_STATUS = re.compile(r"(\d{3})(?:\*(\d+))?")

#: The shell tools of the agents, and the field each takes its command in. The first that is offered is called.
SHELL_TOOLS = (
    ("exec_command", "cmd"),
    ("shell_command", "command"),
    ("run_shell_command", "command"),
    ("run_commands", "commands"),
    ("execute_command", "command"),
    ("terminal", "command"),
    ("developer__shell", "command"),
    ("local_shell", "command"),
    ("shell", "command"),
    ("bash", "command"),
)
#: Fields some shell tools insist on, or that decide what a person gets to see.
SHELL_EXTRAS: Mapping[str, Any] = {"description": "asked for by the test", "is_background": False}
ESCALATION: Mapping[str, Any] = {
    "sandbox_permissions": "require_escalated",
    "with_escalated_permissions": True,
    "justification": "the test wants to be asked",
}


class Call(NamedTuple):
    """A tool call an order asks for. Without a name it is the shell tool's, whatever that is called here."""

    name: str | None
    input: Any


class Orders(NamedTuple):
    """A prompt taken apart."""

    #: The prompt without its orders, on one line.
    said: str
    say: str | None = None
    delay: float = 0.0
    hold: bool = False
    long: int = 0
    slow: float = 0.0
    calls: tuple[Call, ...] = ()
    escalate: bool = False
    usage: int | None = None
    status: int | None = None
    #: How many attempts get that status; None for all.
    times: int | None = None
    body: Any = None


class Request(NamedTuple):
    """A request as every protocol's reader gives it."""

    model: str
    stream: bool
    #: The last thing a person said.
    prompt: str
    #: What tools answered since, oldest first.
    results: tuple[str, ...]
    #: The tools on offer: their name, and the JSON schema of their input.
    tools: Mapping[str, Mapping[str, Any]]
    #: The schema the answer has to follow, when there is one.
    schema: Mapping[str, Any] | None = None


class BadOrder(ValueError):
    """An order that cannot be carried out; the stub answers with these words, so that they are on the screen."""


def parse(prompt: str) -> Orders:
    """Return the orders of a prompt; raises BadOrder with a sentence."""
    calls: list[Call] = []
    found: dict[str, str] = {}
    rest = []
    for word, text in _pieces(prompt):
        if word is None:
            rest.append(text)
        elif word == "tool":
            calls.append(Call(None, text))
        elif word == "call":
            calls.append(_call(text))
        else:
            found[word] = text
    try:
        status, times = _status(found.get("error"))
        return Orders(
            said=" ".join("".join(rest).split()),
            say=found.get("say"),
            delay=float(found.get("delay", 0)),
            hold="hold" in found,
            long=int(found.get("long", 0)),
            slow=float(found.get("slow", 0)),
            calls=tuple(calls),
            escalate="escalate" in found,
            usage=int(found["usage"]) if "usage" in found else None,
            status=status,
            times=times,
            body=json.loads(found["body"]) if "body" in found else None,
        )
    except ValueError as problem:
        raise BadOrder(str(problem)) from None


def _pieces(prompt: str) -> Iterator[tuple[str | None, str]]:
    """Yield (word, value) for orders and (None, text) for what stands between them."""
    at = 0
    while opening := _OPENING.search(prompt, at):
        end = _end(prompt, opening.end())
        if end is None:
            break
        yield None, prompt[at : opening.start()]
        yield opening[1], prompt[opening.end() : end].removeprefix("=")
        at = end + 2
    yield None, prompt[at:]


def _end(prompt: str, start: int) -> int | None:
    """Return where an order's closing brackets are; brackets inside it come in pairs, or stand in JSON."""
    brace = prompt.find("{", start)
    if brace >= 0 and "]]" not in prompt[start:brace]:
        try:
            _, stop = json.JSONDecoder().raw_decode(prompt, brace)
        except ValueError:
            stop = start
        if prompt.startswith("]]", stop):
            return stop
    depth = 2
    for at in range(start, len(prompt)):
        depth += {"[": 1, "]": -1}.get(prompt[at], 0)
        if not depth:
            return at - 1
    return None


def _call(text: str) -> Call:
    named = _NAMED.fullmatch(text)
    if named is None:
        raise BadOrder(f"call= needs a tool's name: {text!r}")
    try:
        return Call(named[1], json.loads(named[2] or "{}"))
    except ValueError as problem:
        raise BadOrder(f"the input of {named[1]} is no JSON: {problem}") from None


def _status(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    match = _STATUS.fullmatch(text)
    if match is None:
        raise BadOrder(f"error= needs a status: {text!r}")
    return int(match[1]), int(match[2]) if match[2] else None


def tool_call(call: Call, orders: Orders, tools: Mapping[str, Mapping[str, Any]]) -> tuple[str, Any]:
    """Return the tool's name as it is offered, and its input; raises BadOrder when it is not offered."""
    lower = {name.lower(): name for name in tools}
    if call.name is not None:
        if call.name.lower() not in lower:
            raise BadOrder(f"no tool {call.name} among {', '.join(sorted(tools))}")
        return lower[call.name.lower()], call.input
    for name, field in SHELL_TOOLS:
        if name in lower:
            return lower[name], _shell_input(field, call.input, orders, tools[lower[name]])
    raise BadOrder(f"no shell tool among {', '.join(sorted(tools))}")


def _shell_input(field: str, command: str, orders: Orders, schema: Mapping[str, Any]) -> dict[str, Any]:
    fields: Mapping[str, Any] = schema.get("properties") or {}
    extras = {**SHELL_EXTRAS, **(ESCALATION if orders.escalate else {})}
    value: Any = command
    if str((fields.get(field) or {}).get("type", "")).lower() == "array":
        # A list is either several commands or one command's words; the plural says which.
        value = [command] if field.endswith("s") else ["bash", "-c", command]
    return {field: value, **{name: extra for name, extra in extras.items() if name in fields}}


def pieces(text: str, slow: float) -> Sequence[str]:
    """Return the text in the pieces it is streamed in: by words, or finer when it has to last."""
    if not slow:
        return re.findall(r"\S+\s*|\s+", text) or [text]
    size = max(1, len(text) // 40)
    return [text[at : at + size] for at in range(0, len(text), size)] or [text]


def filled(schema: Mapping[str, Any], text: str) -> Any:
    """Return plain values that follow a JSON schema, with this for a text: what routers and other helpers want."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        return {name: filled(inner, text) for name, inner in (schema.get("properties") or {}).items()}
    return {"string": text, "array": [], "boolean": False}.get(kind, 0)
