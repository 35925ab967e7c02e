"""The four protocols of the stub model: how a request is read, and how an answer is written."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from typing import Protocol as Interface

from tests.real_agents.stub_orders import Request

#: An event of a stream: its name, for protocols that give one, and its data (a string is sent as it is).
Event = tuple[str | None, Any]
Json = Mapping[str, Any]

#: What agents put around a prompt on their own account.
_WRAPPED = re.compile(
    r"<(system-reminder|system_reminder|environment_details|current_datetime|reminder|"
    r"environment_context|session_context|info-msg)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
_TAG = re.compile(r"</?(?:user_input|user_message|task|feedback)\b[^>]*>")


class Answer(NamedTuple):
    """What a request gets."""

    number: int
    text: str
    tokens: int
    delay: float = 0.0
    slow: float = 0.0
    #: Which answer to a prompt this is, for one that is held back: 1 is the first.
    held: int | None = None
    tool: str | None = None
    input: Any = None
    #: An HTTP status instead of an answer, and its body when the order gave one.
    status: int | None = None
    body: Any = None

    @property
    def call_id(self) -> str:
        """The name of its tool call."""
        return f"call_stub_{self.number:06d}"


class Protocol(Interface):
    """One way of talking to a model."""

    def read(self, path: str, body: Json) -> Request:
        """Return the request, however it was put."""

    def whole(self, answer: Answer, request: Request) -> Any:
        """Return the answer as one JSON value."""

    def events(self, answer: Answer, request: Request, pieces: Iterable[str]) -> Iterator[Event]:
        """Yield the answer as a stream; its text comes from `pieces`, which takes its time."""

    def error(self, answer: Answer) -> Any:
        """Return the body of an error."""


class Turn(NamedTuple):
    """One message of a history: a person's (`user`) or a tool's (`tool`); the model's are left out."""

    kind: str
    text: str


def words_of(content: Any) -> str:
    """Return the text of a message's content, in any of the shapes there are."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        inner = next((content[name] for name in ("text", "parts", "content", "output") if content.get(name)), None)
        return words_of(inner)
    return "\n".join(filter(None, map(words_of, content)))


def typed(content: Any) -> str:
    """Return what a person typed of a user message: its last part that is not an agent's own addition."""
    parts = [content] if isinstance(content, str | Mapping) else list(content or [])
    kept = [text for text in (_TAG.sub("", _WRAPPED.sub("", words_of(part))).strip() for part in parts) if text]
    return kept[-1] if kept else ""


def last_of(turns: Iterable[Turn]) -> tuple[str, tuple[str, ...]]:
    """Return the last prompt, and what tools answered after it."""
    prompt, results = "", list[str]()
    for turn in turns:
        if turn.kind == "tool":
            results.append(turn.text)
        elif turn.text:
            prompt, results = turn.text, []
    return prompt, tuple(results)


class Anthropic:
    """Messages."""

    def read(self, path: str, body: Json) -> Request:
        prompt, results = last_of(self._turns(body.get("messages") or []))
        tools = {tool["name"]: tool.get("input_schema") or {} for tool in body.get("tools") or [] if "name" in tool}
        return Request(str(body.get("model")), bool(body.get("stream")), prompt, results, tools)

    @staticmethod
    def _turns(messages: Sequence[Json]) -> Iterator[Turn]:
        for message in messages:
            if message.get("role") != "user":
                continue
            content = message.get("content")
            parts = content if isinstance(content, list) else []
            results = [part for part in parts if part.get("type") == "tool_result"]
            for part in results:
                yield Turn("tool", words_of(part.get("content")))
            if not results:
                yield Turn("user", typed(content))

    def whole(self, answer: Answer, request: Request) -> Any:
        content: list[Any] = [{"type": "text", "text": answer.text}] if answer.text else []
        if answer.tool is not None:
            content.append(self._tool(answer, answer.input))
        return {**self._message(answer, request), "content": content, "stop_reason": self._stop(answer)}

    def events(self, answer: Answer, request: Request, pieces: Iterable[str]) -> Iterator[Event]:
        def event(kind: str, **fields: Any) -> Event:
            return kind, {"type": kind, **fields}

        yield event("message_start", message=self._message(answer, request))
        yield event("ping")
        if answer.tool is None:
            yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            for piece in pieces:
                yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        else:
            any(pieces)
            yield event("content_block_start", index=0, content_block=self._tool(answer, {}))
            delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.input)}
            yield event("content_block_delta", index=0, delta=delta)
        yield event("content_block_stop", index=0)
        stop = {"stop_reason": self._stop(answer), "stop_sequence": None}
        yield event("message_delta", delta=stop, usage={**self._usage(answer), "output_tokens": 12})
        yield event("message_stop")

    def error(self, answer: Answer) -> Any:
        kinds = {
            401: "authentication_error",
            429: "rate_limit_error",
            529: "overloaded_error",
            400: "invalid_request_error",
        }
        kind = kinds.get(answer.status or 0, "api_error")
        return {"type": "error", "error": {"type": kind, "message": f"stub error {answer.status}"}}

    def _message(self, answer: Answer, request: Request) -> dict[str, Any]:
        head = {"id": f"msg_stub_{answer.number:06d}", "type": "message", "role": "assistant", "model": request.model}
        return {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": self._usage(answer)}

    @staticmethod
    def _usage(answer: Answer) -> dict[str, int]:
        cache = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        return {"input_tokens": answer.tokens, **cache, "output_tokens": 1}

    @staticmethod
    def _tool(answer: Answer, value: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"toolu_stub_{answer.number:06d}", "name": answer.tool, "input": value}

    @staticmethod
    def _stop(answer: Answer) -> str:
        return "end_turn" if answer.tool is None else "tool_use"


def openai_turns(items: Any) -> Iterator[Turn]:
    """Yield the turns of OpenAI's two protocols, which differ in where tools answer."""
    if isinstance(items, str):
        yield Turn("user", typed(items))
        return
    for item in items or []:
        if str(item.get("type", "")).endswith("_call_output"):
            yield Turn("tool", words_of(item.get("output")))
        elif item.get("role") == "tool":
            yield Turn("tool", words_of(item.get("content")))
        elif item.get("role") == "user":
            yield Turn("user", typed(item.get("content")))


def openai_error(answer: Answer) -> Any:
    """Return an error as OpenAI words it."""
    kinds = {401: "invalid_request_error", 429: "rate_limit_exceeded", 400: "invalid_request_error"}
    kind = kinds.get(answer.status or 0, "server_error")
    return {"error": {"message": f"stub error {answer.status}", "type": kind, "code": kind}}


class Chat:
    """OpenAI chat completions."""

    def read(self, path: str, body: Json) -> Request:
        prompt, results = last_of(openai_turns(body.get("messages")))
        functions = [tool["function"] for tool in body.get("tools") or [] if "function" in tool]
        tools = {function["name"]: function.get("parameters") or {} for function in functions}
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        return Request(str(body.get("model")), bool(body.get("stream")), prompt, results, tools, schema)

    def whole(self, answer: Answer, request: Request) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
        if answer.tool is not None:
            message["tool_calls"] = [self._call(answer)]
        choice = {"index": 0, "message": message, "finish_reason": self._finish(answer)}
        return {**self._head(answer, request, ""), "choices": [choice], "usage": self._usage(answer)}

    def events(self, answer: Answer, request: Request, pieces: Iterable[str]) -> Iterator[Event]:
        head = self._head(answer, request, ".chunk")

        def chunk(delta: Json, finish: str | None = None) -> Event:
            return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces:
            if piece:
                yield chunk({"content": piece})
        if answer.tool is not None:
            yield chunk({"tool_calls": [{"index": 0, **self._call(answer)}]})
        yield chunk({}, self._finish(answer))
        yield None, {**head, "choices": [], "usage": self._usage(answer)}
        yield None, "[DONE]"

    def error(self, answer: Answer) -> Any:
        return openai_error(answer)

    @staticmethod
    def _head(answer: Answer, request: Request, suffix: str) -> dict[str, Any]:
        head = {"id": f"chatcmpl-stub-{answer.number}", "object": f"chat.completion{suffix}"}
        return {**head, "created": int(time.time()), "model": request.model}

    @staticmethod
    def _usage(answer: Answer) -> dict[str, int]:
        return {"prompt_tokens": answer.tokens, "completion_tokens": 12, "total_tokens": answer.tokens + 12}

    @staticmethod
    def _call(answer: Answer) -> dict[str, Any]:
        function = {"name": answer.tool, "arguments": json.dumps(answer.input)}
        return {"id": answer.call_id, "type": "function", "function": function}

    @staticmethod
    def _finish(answer: Answer) -> str:
        return "stop" if answer.tool is None else "tool_calls"


class Responses:
    """OpenAI responses."""

    def read(self, path: str, body: Json) -> Request:
        prompt, results = last_of(openai_turns(body.get("input")))
        tools = {tool["name"]: tool.get("parameters") or {} for tool in body.get("tools") or [] if "name" in tool}
        schema = ((body.get("text") or {}).get("format") or {}).get("schema")
        return Request(str(body.get("model")), bool(body.get("stream")), prompt, results, tools, schema)

    def whole(self, answer: Answer, request: Request) -> Any:
        usage = {
            "input_tokens": answer.tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.tokens + 12,
        }
        head = self._head(answer, request)
        return {**head, "status": "completed", "output": [self._item(answer)], "usage": usage}

    def events(self, answer: Answer, request: Request, pieces: Iterable[str]) -> Iterator[Event]:
        order = itertools.count()
        item = self._item(answer)
        place = {"item_id": item["id"], "output_index": 0}
        inside = {**place, "content_index": 0}

        def event(kind: str, **fields: Any) -> Event:
            return kind, {"type": kind, "sequence_number": next(order), **fields}

        yield event("response.created", response=self._head(answer, request))
        yield event("response.in_progress", response=self._head(answer, request))
        if answer.tool is None:
            empty = {"type": "output_text", "text": "", "annotations": []}
            added = {**item, "status": "in_progress", "content": []}
            yield event("response.output_item.added", output_index=0, item=added)
            yield event("response.content_part.added", **inside, part=empty)
            for piece in pieces:
                yield event("response.output_text.delta", **inside, delta=piece)
            yield event("response.output_text.done", **inside, text=answer.text)
            yield event("response.content_part.done", **inside, part=item["content"][0])
        else:
            any(pieces)
            added = {**item, "status": "in_progress", "arguments": ""}
            yield event("response.output_item.added", output_index=0, item=added)
            yield event("response.function_call_arguments.delta", **place, delta=item["arguments"])
            yield event("response.function_call_arguments.done", **place, arguments=item["arguments"])
        yield event("response.output_item.done", output_index=0, item=item)
        yield event("response.completed", response=self.whole(answer, request))

    def error(self, answer: Answer) -> Any:
        return openai_error(answer)

    @staticmethod
    def _head(answer: Answer, request: Request) -> dict[str, Any]:
        head = {"id": f"resp_stub_{answer.number}", "object": "response", "created_at": int(time.time())}
        return {**head, "model": request.model, "status": "in_progress", "output": []}

    @staticmethod
    def _item(answer: Answer) -> dict[str, Any]:
        if answer.tool is None:
            text = {"type": "output_text", "text": answer.text, "annotations": []}
            head = {"type": "message", "id": f"msg_stub_{answer.number}", "role": "assistant", "status": "completed"}
            return {**head, "content": [text]}
        head = {"type": "function_call", "id": f"fc_stub_{answer.number}", "status": "completed"}
        return {**head, "call_id": answer.call_id, "name": answer.tool, "arguments": json.dumps(answer.input)}


class Gemini:
    """Gemini's generateContent and streamGenerateContent; the model and the streaming stand in the path."""

    def read(self, path: str, body: Json) -> Request:
        prompt, results = last_of(self._turns(body.get("contents") or []))
        tools = {
            function["name"]: function.get("parametersJsonSchema") or function.get("parameters") or {}
            for group in body.get("tools") or []
            for function in group.get("functionDeclarations") or []
        }
        wanted = body.get("generationConfig") or {}
        schema = wanted.get("responseJsonSchema") or wanted.get("responseSchema")
        model = path.rpartition("/models/")[2].partition(":")[0]
        return Request(model, ":streamGenerateContent" in path, prompt, results, tools, schema)

    @staticmethod
    def _turns(contents: Any) -> Iterator[Turn]:
        for content in contents if isinstance(contents, list) else [contents]:
            if isinstance(content, str):
                yield Turn("user", typed(content))
                continue
            if content.get("role", "user") not in ("user", "function"):
                continue
            parts = content.get("parts") or []
            results = [part["functionResponse"] for part in parts if "functionResponse" in part]
            for result in results:
                yield Turn("tool", words_of((result.get("response") or {}).get("output")) or json.dumps(result))
            if not results:
                yield Turn("user", typed(parts))

    def whole(self, answer: Answer, request: Request) -> Any:
        return self._piece(answer, request, self._parts(answer), last=True)

    def events(self, answer: Answer, request: Request, pieces: Iterable[str]) -> Iterator[Event]:
        for piece in pieces:
            if piece:
                yield None, self._piece(answer, request, [{"text": piece}], last=False)
        parts = [{"text": ""}] if answer.tool is None else self._parts(answer)
        yield None, self._piece(answer, request, parts, last=True)

    def error(self, answer: Answer) -> Any:
        states = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        state = states.get(answer.status or 0, "INTERNAL")
        return {"error": {"code": answer.status, "message": f"stub error {answer.status}", "status": state}}

    @staticmethod
    def _parts(answer: Answer) -> list[Any]:
        if answer.tool is None:
            return [{"text": answer.text}]
        return [{"functionCall": {"id": answer.call_id, "name": answer.tool, "args": answer.input}}]

    @staticmethod
    def _piece(answer: Answer, request: Request, parts: list[Any], *, last: bool) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
        usage = {
            "promptTokenCount": answer.tokens,
            "candidatesTokenCount": 12,
            "totalTokenCount": answer.tokens + 12,
        }
        head = {"usageMetadata": usage, "modelVersion": request.model, "responseId": f"stub-{answer.number}"}
        return {"candidates": [{**candidate, "finishReason": "STOP"} if last else candidate], **head}


#: By the way their paths end.
PROTOCOLS: Mapping[str, Protocol] = {
    "/messages": Anthropic(),
    "/chat/completions": Chat(),
    "/responses": Responses(),
    ":generateContent": Gemini(),
    ":streamGenerateContent": Gemini(),
}


def protocol_of(path: str) -> Protocol | None:
    """Return the protocol a path belongs to."""
    return next((protocol for ending, protocol in PROTOCOLS.items() if path.endswith(ending)), None)
