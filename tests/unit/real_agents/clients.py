"""Talks to the stub model as agents do, in each of its protocols."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPConnection
from typing import Any, NamedTuple

from tests.real_agents.stub_model import StubModel

#: A shell tool as most agents offer it.
SHELL: Mapping[str, Any] = {"bash": {"type": "object", "properties": {"command": {"type": "string"}}}}


class Got(NamedTuple):
    """What a request got, whatever it came in."""

    status: int
    text: str = ""
    tool: str | None = None
    input: Any = None
    tokens: int | None = None


class Ask(NamedTuple):
    """A request before it has a protocol."""

    prompt: Any
    #: What tools answered after the prompt.
    results: Sequence[str] = ()
    tools: Mapping[str, Any] = SHELL
    model: str = "stub-1"
    stream: bool = False


class Client(NamedTuple):
    """One protocol: how a request is written, and how an answer is read from JSON values in order."""

    path: Callable[[Ask], str]
    body: Callable[[Ask], dict[str, Any]]
    read: Callable[[list[Any]], Got]

    def ask(self, stub: StubModel, ask: Ask) -> Got:
        """Send it and read the answer."""
        status, raw = post(stub, self.path(ask), self.body(ask))
        if status != 200:
            return Got(status, text=raw)
        return self.read(list(_events(raw)) if ask.stream else [json.loads(raw)])


def post(stub: StubModel, path: str, body: Any) -> tuple[int, str]:
    """Return the status and the body of an answer."""
    connection = HTTPConnection("127.0.0.1", stub.port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def _events(raw: str) -> Iterator[Any]:
    for line in raw.splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def _anthropic(ask: Ask) -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": ask.prompt}]
    for result in ask.results:
        answer = {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": result}]}
        messages += [{"role": "assistant", "content": []}, {"role": "user", "content": [answer]}]
    tools = [{"name": name, "input_schema": schema} for name, schema in ask.tools.items()]
    return {"model": ask.model, "stream": ask.stream, "messages": messages, "tools": tools}


def _read_anthropic(values: list[Any]) -> Got:
    if values[0]["type"] == "message":
        (block,) = values[0]["content"]
        return Got(
            200, block.get("text", ""), block.get("name"), block.get("input"), values[0]["usage"]["input_tokens"]
        )
    deltas = [value["delta"] for value in values if value["type"] == "content_block_delta"]
    names = [value["content_block"].get("name") for value in values if value["type"] == "content_block_start"]
    inputs = "".join(delta.get("partial_json", "") for delta in deltas)
    text = "".join(delta.get("text", "") for delta in deltas)
    tokens = next(value["usage"]["input_tokens"] for value in values if value["type"] == "message_delta")
    return Got(200, text, names[0], json.loads(inputs) if inputs else None, tokens)


def _chat(ask: Ask) -> dict[str, Any]:
    messages: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": ask.prompt}]
    for result in ask.results:
        messages += [{"role": "assistant", "content": None}, {"role": "tool", "content": result}]
    tools = [{"type": "function", "function": {"name": name, "parameters": it}} for name, it in ask.tools.items()]
    return {"model": ask.model, "stream": ask.stream, "messages": messages, "tools": tools}


def _read_chat(values: list[Any]) -> Got:
    parts = [choice.get("message") or choice["delta"] for value in values for choice in value["choices"]]
    text = "".join(part.get("content") or "" for part in parts)
    calls = [call["function"] for part in parts for call in part.get("tool_calls") or []]
    tokens = values[-1]["usage"]["prompt_tokens"]
    if not calls:
        return Got(200, text, tokens=tokens)
    return Got(200, text, calls[0]["name"], json.loads(calls[0]["arguments"]), tokens)


def _responses(ask: Ask) -> dict[str, Any]:
    content = ask.prompt if isinstance(ask.prompt, str) else [{**part, "type": "input_text"} for part in ask.prompt]
    items: list[Any] = [{"type": "message", "role": "user", "content": content}]
    items += [{"type": "function_call_output", "call_id": "x", "output": result} for result in ask.results]
    tools = [{"type": "function", "name": name, "parameters": schema} for name, schema in ask.tools.items()]
    return {"model": ask.model, "stream": ask.stream, "input": items, "tools": tools}


def _read_responses(values: list[Any]) -> Got:
    whole = values[-1].get("response", values[-1])
    deltas = "".join(value["delta"] for value in values if value.get("type") == "response.output_text.delta")
    (item,) = whole["output"]
    tokens = whole["usage"]["input_tokens"]
    if item["type"] == "function_call":
        return Got(200, "", item["name"], json.loads(item["arguments"]), tokens)
    text = item["content"][0]["text"]
    assert deltas in ("", text)
    return Got(200, text, tokens=tokens)


def _gemini(ask: Ask) -> dict[str, Any]:
    parts = [{"text": ask.prompt}] if isinstance(ask.prompt, str) else [{"text": part["text"]} for part in ask.prompt]
    contents: list[Any] = [{"role": "user", "parts": parts}]
    for result in ask.results:
        answer = {"functionResponse": {"name": "x", "response": {"output": result}}}
        contents += [{"role": "model", "parts": []}, {"role": "user", "parts": [answer]}]
    declared = [{"name": name, "parametersJsonSchema": schema} for name, schema in ask.tools.items()]
    return {"contents": contents, "tools": [{"functionDeclarations": declared}]}


def _read_gemini(values: list[Any]) -> Got:
    parts = [part for value in values for part in value["candidates"][0]["content"]["parts"]]
    text = "".join(part.get("text", "") for part in parts)
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    tokens = values[-1]["usageMetadata"]["promptTokenCount"]
    return Got(200, text, calls[0]["name"], calls[0]["args"], tokens) if calls else Got(200, text, tokens=tokens)


def _gemini_path(ask: Ask) -> str:
    verb = "streamGenerateContent?alt=sse" if ask.stream else "generateContent"
    return f"/v1beta/models/{ask.model}:{verb}"


CLIENTS: Mapping[str, Client] = {
    "anthropic": Client(lambda ask: "/v1/messages?beta=true", _anthropic, _read_anthropic),
    "chat": Client(lambda ask: "/v1/chat/completions", _chat, _read_chat),
    "responses": Client(lambda ask: "/v1/responses", _responses, _read_responses),
    "gemini": Client(_gemini_path, _gemini, _read_gemini),
}
