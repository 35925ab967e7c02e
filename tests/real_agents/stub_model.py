"""A model server on the loopback interface that real agents can talk to: no network, no account, no surprises.

It speaks Anthropic Messages, OpenAI chat completions, OpenAI Responses and Gemini, each as JSON and as a stream of
events (stub_wire.py). What it answers, the prompt orders (stub_orders.py).

Agents also ask for things nobody typed: titles, summaries, which model to take. Such a request quotes the prompt, so it
must not obey it. It is known by offering no tools, and is answered at once with "Stub aside <n>", or with whatever
JSON it wants. An agent whose prompts go without tools as well is given a model whose name ends in TOOLLESS.

    python -m tests.real_agents.stub_model --port 18080 [--log FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

from tests.real_agents.stub_orders import BadOrder, Orders, Request, filled, parse, pieces, tool_call
from tests.real_agents.stub_wire import PROTOCOLS, Answer, Event, Protocol, protocol_of

#: How the name of a model ends that takes orders in requests without tools.
TOOLLESS = "-toolless"


class Seen(NamedTuple):
    """One request, as tests may look at it. Never with a key."""

    path: str
    #: False for what nobody typed: titles, routers.
    ordered: bool
    request: Request
    #: The number in its answer: prompts and what nobody typed are counted apart.
    number: int
    at: float
    #: The whole body as it was sent: everything the agent holds to have been said.
    body: str = ""


class StubModel:
    """The server, in a thread of this process. `with StubModel() as stub:` runs it."""

    def __init__(self, port: int = 0, log: str | None = None) -> None:
        self.seen: list[Seen] = []
        self._log = log
        self._lock = threading.Lock()
        self._replies = itertools.count(1)
        self._asides = itertools.count(1)
        self._attempts: Counter[str] = Counter()
        #: Prompts as they were sent, before what came earlier was taken off.
        self._sent: set[str] = set()
        self._ending = threading.Event()
        #: How many answers to each prompt are let go that holds its answers back.
        self._gone = 0
        self._going = threading.Condition()
        self._server = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its address without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def prompts(self) -> list[str]:
        """Everything that was typed into agents so far, a prompt once per attempt; tool results do not count."""
        with self._lock:
            return [seen.request.prompt for seen in self.seen if seen.ordered and not seen.request.results]

    def __enter__(self) -> StubModel:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Answers that are being delayed end now.
        self._end()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self) -> None:
        """Run in this thread until interrupted."""
        try:
            self._server.serve_forever()
        except KeyboardInterrupt:
            self._end()
        finally:
            self._server.server_close()

    def wait(self, seconds: float) -> None:
        """Take that long, unless the server is about to end."""
        if seconds > 0:
            self._ending.wait(seconds)

    def let_go(self, count: int) -> None:
        """Let so many answers go to each prompt that holds them back; 0: none of those that are asked for from now on."""
        with self._going:
            self._gone = count
            self._going.notify_all()

    def wait_to_go(self, answer: Answer) -> None:
        """Wait until an answer may begin."""
        with self._going:
            self._going.wait_for(lambda: answer.held is None or self._gone >= answer.held or self._ending.is_set())
        self.wait(answer.delay)

    def _end(self) -> None:
        self._ending.set()
        with self._going:
            self._going.notify_all()

    def answer(self, path: str, request: Request, body: str) -> Answer:
        """Decide what a request gets, and remember it."""
        ordered = bool(request.tools) or request.model.endswith(TOOLLESS)
        with self._lock:
            if ordered:
                request = request._replace(prompt=self._newest(request))
            number = next(self._replies if ordered else self._asides)
            self.seen.append(Seen(path, ordered, request, number, time.time(), body))
            self._note(self.seen[-1])
            self._attempts[request.prompt] += ordered
            attempt = self._attempts[request.prompt]
        tokens = max(1, len(body) // 4)
        if not ordered:
            aside = f"Stub aside {number}"
            text = aside if request.schema is None else json.dumps(filled(request.schema, aside))
            return Answer(number=number, text=text, tokens=tokens)
        try:
            orders = parse(request.prompt)
            answer = _obey(orders, request, number, attempt, tokens)
            return answer._replace(held=len(request.results) + 1) if orders.hold else answer
        except BadOrder as problem:
            return Answer(number=number, text=f"STUB-BAD-ORDER {number}: {problem}", tokens=tokens)

    def _newest(self, request: Request) -> str:
        """Return a prompt without what agents put into one text with it.

        After a turn that failed, hermes sends the next prompt below the one before. Aider, which has no tools, adds
        its instructions below every prompt.
        """
        prompt = request.prompt
        if not request.tools:
            return prompt.partition("\n\n")[0]
        self._sent.add(prompt)
        earlier = max((sent for sent in self._sent if prompt.startswith(f"{sent}\n\n")), key=len, default="")
        return prompt.removeprefix(earlier).strip()

    def _note(self, seen: Seen) -> None:
        if self._log is None:
            return
        request = seen.request
        line = {"at": seen.at, "path": seen.path, "ordered": seen.ordered, "model": request.model}
        line |= {"stream": request.stream, "prompt": request.prompt[-2000:], "results": request.results}
        line |= {"tools": sorted(request.tools), "schema": request.schema is not None}
        with open(self._log, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _obey(orders: Orders, request: Request, number: int, attempt: int, tokens: int) -> Answer:
    """Return the answer the prompt orders."""
    tokens = orders.usage or tokens
    if orders.status is not None and (orders.times is None or attempt <= orders.times):
        return Answer(number=number, text="", tokens=tokens, status=orders.status, body=orders.body)
    if orders.calls and not request.tools:
        # An agent without tools reads from the answer what is to be run, and asks.
        written = "\n".join(str(call.input) for call in orders.calls)
        return Answer(number=number, text=f"```bash\n{written}\n```\n", tokens=tokens, delay=orders.delay)
    done = len(request.results)
    if done < len(orders.calls):
        name, value = tool_call(orders.calls[done], orders, request.tools)
        delay = 0.0 if done else orders.delay
        return Answer(number=number, text="", tokens=tokens, delay=delay, tool=name, input=value)
    if done:
        said = " ".join(request.results[-1].split())[:60]
        text = orders.say if orders.say is not None else f"STUB-DONE {number}: {said}"
        return Answer(number=number, text=text, tokens=tokens, slow=orders.slow)
    text = orders.say if orders.say is not None else f"STUB-REPLY {number}: {orders.said[:60]}"
    text += "".join(f"\n\nline {line + 1}" for line in range(orders.long))
    return Answer(number=number, text=text, tokens=tokens, delay=orders.delay, slow=orders.slow)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A test that ends does not wait for answers nobody reads any more.
    block_on_close = False

    def __init__(self, address: tuple[str, int], stub: StubModel) -> None:
        self.stub = stub
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what happens when an agent is killed; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: standard error belongs to the tests."""

    def do_HEAD(self) -> None:
        self._json({}, 200)

    def do_GET(self) -> None:
        path = self.path.split("?")[0].rstrip("/")
        if path.endswith("/models"):
            model = {"id": "stub-1", "object": "model", "created": 1, "owned_by": "stub", "context_length": 128000}
            self._json({"object": "list", "data": [model], "models": []}, 200)
        elif path in ("", "/health"):
            self._json({"ok": True}, 200)
        else:
            self._not_found(path)

    def do_POST(self) -> None:
        raw = self._read()
        path = self.path.split("?")[0].rstrip("/")
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            self._json({"error": {"message": "no JSON", "code": 400}}, 400)
            return
        simple = _simple(path, len(raw))
        protocol = protocol_of(path)
        if simple is not None:
            self._json(simple, 200)
        elif protocol is None:
            self._not_found(path)
        else:
            self._answer(protocol, path, body)

    def _answer(self, protocol: Protocol, path: str, body: dict[str, Any]) -> None:
        stub = self.server.stub
        request = protocol.read(path, body)
        answer = stub.answer(path, request, json.dumps(body, ensure_ascii=False))
        if answer.status is not None:
            self._json(protocol.error(answer) if answer.body is None else answer.body, answer.status)
        elif not request.stream:
            stub.wait_to_go(answer)
            stub.wait(answer.slow)
            self._json(protocol.whole(answer, request), 200)
        else:
            self._stream(protocol.events(answer, request, self._paced(answer)))

    def _paced(self, answer: Answer) -> Iterator[str]:
        """Yield the answer's text piece by piece, as slowly as ordered."""
        parts = pieces(answer.text, answer.slow)
        self.server.stub.wait_to_go(answer)
        for part in parts:
            yield part
            self.server.stub.wait(answer.slow / len(parts))

    def _stream(self, events: Iterator[Event]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        for name, value in events:
            data = value if isinstance(value, str) else json.dumps(value)
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {data}\n\n".encode())
            self.wfile.flush()

    def _json(self, value: Any, status: int) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def _not_found(self, path: str) -> None:
        self._json({"error": {"type": "not_found_error", "message": f"no {path} here", "code": 404}}, 404)

    def _read(self) -> bytes:
        """Return the body, in either of the ways it may be sent."""
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        raw = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw


def _simple(path: str, size: int) -> Any:
    """Return the answer to requests no prompt is behind; None for the others."""
    tokens = max(1, size // 4)
    if path.endswith("/messages/count_tokens"):
        return {"input_tokens": tokens}
    if path.endswith(":countTokens"):
        return {"totalTokens": tokens}
    if path.endswith(":embedContent"):
        return {"embedding": {"values": [0.0] * 8}}
    if path.endswith("/responses/compact"):
        text = {"type": "input_text", "text": "The stub's summary of what was said before."}
        return {"output": [{"type": "message", "role": "user", "content": [text]}]}
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=f"A stub model on the loopback interface: {', '.join(PROTOCOLS)}.")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes any that is free")
    parser.add_argument("--log", help="append a JSON line per request")
    options = parser.parse_args()
    stub = StubModel(options.port, options.log)
    print(stub.url, flush=True)
    stub.serve()


if __name__ == "__main__":
    main()
