from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import msgspec
import pytest

from perdure.live.ask_command import CommandVoice
from perdure.live.ask_model import ModelVoice, read_answer
from perdure.live.ponder import Voice, voice_of
from perdure.live.question import Answer, Question, answer_line
from perdure.model.config import ThoughtsConfig
from perdure.model.thought import ThoughtSource
from tests.builders import NOON, at

KEY = "sk-test-0123456789abcdefghij"
T = TypeVar("T")


def question(run: str = "r1", prompt: str = "State: busy\nTask: sort the mail") -> Question:
    session = {"session_id": run, "state": "busy"}
    return Question(run=run, fingerprint="f", objective_changed_at=NOON, prompt=prompt, topic=prompt, session=session)


def eventually(find: Callable[[], T | None]) -> T:
    """Return what is found in the end."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if found := find():
            return found
        time.sleep(0.01)
    raise AssertionError("it never came")


class Endpoint:
    """An endpoint that answers what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.body: Any = {"choices": [{"message": {"content": '"Putting letters in order"\nmore'}}]}
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, Mapping[str, str], Any]] = []
        self.held = threading.Event()
        self.held.set()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.asked.append((self.path, dict(self.headers), msgspec.json.decode(raw)))
                endpoint.held.wait(20)
                answer = endpoint.body if isinstance(endpoint.body, bytes) else msgspec.json.encode(endpoint.body)
                self.send_response(endpoint.status)
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def config(self, **changes: Any) -> ThoughtsConfig:
        given = {"source": "model", "endpoint": self.url, "model": "small", "key_variable": "MY_KEY", **changes}
        return ThoughtsConfig(**given)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    stub = Endpoint()
    yield stub
    stub.held.set()
    stub.server.shutdown()
    stub.server.server_close()


def asked_once(voice: ModelVoice) -> list[Answer]:
    """What comes of one question, in the end."""
    assert voice.ask(question(), NOON)
    found = eventually(lambda: voice.answers(at(1)) or voice.trouble)
    voice.close()
    return found if isinstance(found, list) else []


def test_a_model_is_asked_as_openais_are(endpoint: Endpoint) -> None:
    [answer] = asked_once(ModelVoice(endpoint.config(), {"MY_KEY": KEY}))
    assert answer == Answer(run="r1", fingerprint="f", text="Putting letters in order", source=ThoughtSource.MODEL)
    [(path, headers, body)] = endpoint.asked
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert (body["model"], body["messages"][1]["content"]) == ("small", question().prompt)
    assert KEY not in str(body)


def test_a_model_is_asked_as_anthropics_are(endpoint: Endpoint) -> None:
    endpoint.body = {"content": [{"type": "text", "text": "Sorting"}], "usage": {"input_tokens": 9, "output_tokens": 2}}
    [answer] = asked_once(ModelVoice(endpoint.config(api="anthropic"), {"MY_KEY": KEY}))
    assert answer.text == "Sorting"
    [(path, headers, body)] = endpoint.asked
    assert path == "/v1/messages"
    assert {name.lower(): value for name, value in headers.items()}["x-api-key"] == KEY
    assert "Authorization" not in headers
    assert body["system"]
    assert body["messages"] == [{"role": "user", "content": question().prompt}]


def test_without_a_key_none_is_sent_and_one_that_is_missing_is_said(endpoint: Endpoint) -> None:
    assert asked_once(ModelVoice(endpoint.config(key_variable=""), {"MY_KEY": KEY}))
    assert "Authorization" not in endpoint.asked[0][1]
    voice = ModelVoice(endpoint.config(), {})
    assert not voice.ask(question(), NOON)
    assert voice.trouble == "The variable MY_KEY is not set."
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("status", "body", "trouble"),
    [
        (401, {"error": KEY}, "status 401"),
        (500, b"", "status 500"),
        (200, b"no json " + KEY.encode(), "cannot be read"),
        (200, {"choices": []}, "cannot be read"),
        (200, [1], "cannot be read"),
    ],
)
def test_a_failure_is_said_without_repeating_anything_and_is_not_tried_again_at_once(
    endpoint: Endpoint, status: int, body: object, trouble: str
) -> None:
    endpoint.status, endpoint.body = status, body
    voice = ModelVoice(endpoint.config(), {"MY_KEY": KEY})
    assert asked_once(voice) == []
    assert trouble in (voice.trouble or "")
    assert KEY not in (voice.trouble or "")
    assert not voice.ask(question(), at(2))
    assert voice.ask(question(), at(60))


def test_nobody_is_followed_elsewhere_with_the_key(endpoint: Endpoint) -> None:
    other = Endpoint()
    endpoint.status, endpoint.headers = 307, {"Location": f"{other.url}/chat/completions"}
    voice = ModelVoice(endpoint.config(), {"MY_KEY": KEY})
    assert asked_once(voice) == []
    assert "307" in (voice.trouble or "")
    assert other.asked == []
    other.server.shutdown()
    other.server.server_close()


def test_an_endpoint_that_does_not_answer_holds_nobody_up(endpoint: Endpoint) -> None:
    endpoint.held.clear()
    voice = ModelVoice(endpoint.config(), {"MY_KEY": KEY}, patience=0.2)
    assert voice.ask(question(), NOON)
    assert voice.answers(NOON) == []
    eventually(lambda: voice.answers(at(1)) or voice.trouble)
    assert voice.trouble == "The endpoint did not answer in time."
    nowhere = ModelVoice(endpoint.config(endpoint="http://127.0.0.1:1/v1"), {"MY_KEY": KEY})
    assert asked_once(nowhere) == []
    assert nowhere.trouble == "The endpoint cannot be reached."


def test_no_more_is_asked_or_spent_than_the_configuration_allows(endpoint: Endpoint) -> None:
    endpoint.body["usage"] = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    config = endpoint.config(price_in=0.6, price_out=0.0, max_cost_per_day=1.0)
    voice = ModelVoice(config, {"MY_KEY": KEY})
    for seconds in (0, 10):
        assert voice.ask(question(), at(seconds))
        eventually(lambda: voice.answers(at(1)))
    assert not voice.ask(question(), at(20))
    assert "as the configuration allows" in (voice.trouble or "")
    assert voice.ask(question(), at(90_000))
    few = ModelVoice(endpoint.config(max_calls_per_hour=1), {"MY_KEY": KEY})
    assert few.ask(question(), NOON)
    assert not few.ask(question(), at(60))


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("  \n'Sorting the mail'\nand more", "Sorting the mail"),
        ("", None),
        (None, None),
        ("**Sorting**", "Sorting"),
        ("x" * 500, "x" * 119 + "…"),
    ],
)
def test_an_answer_is_one_line(said: str | None, line: str | None) -> None:
    assert answer_line(said) == line


def test_an_answer_without_text_says_nothing() -> None:
    assert read_answer(b'{"choices":[{"message":{"content":null}}]}') == (None, None)
    assert read_answer(b'{"content":[]}') == ("", None)


# A command


COMMAND = """
import json, os, sys
{before}
number = 0
for line in sys.stdin:
    asked = json.loads(line)
    number += 1
    updates = [{{"session_id": each["session_id"], "thought": f"thought {{number}}", "emission_seq": number,
                "rest_state": "deep_sleep", "objective_changed": number > 1}} for each in asked["sessions"]]
    reply = {{"type": "sync_result", "id": asked["id"], "stream_instance_id": str(os.getpid()), "updates": updates}}
    {inside}
    print(json.dumps(reply), flush=True)
"""


def command(before: str = "", inside: str = "", **changes: Any) -> CommandVoice:
    argv = (sys.executable, "-c", COMMAND.format(before=before, inside=inside))
    config = ThoughtsConfig(source="command", command=argv, **changes)
    return CommandVoice(config, os.environ, patience=20)


@pytest.fixture
def voices() -> Iterator[list[CommandVoice]]:
    made: list[CommandVoice] = []
    yield made
    for voice in made:
        voice.close()


def told(voice: CommandVoice, *runs: str, seconds: float = 0) -> list[Answer]:
    """What comes of a batch of questions, in the end: answers, or trouble."""
    voice.trouble = None
    for run in runs:
        voice.ask(question(run), at(seconds))
    assert voice.answers(at(seconds)) == []
    return eventually(lambda: voice.answers(at(seconds)) or ([] if not voice.trouble else [None])) if runs else []  # type: ignore[list-item]


def test_a_command_is_asked_about_all_runs_at_once_and_kept_running(voices: list[CommandVoice]) -> None:
    voices.append(voice := command())
    first = told(voice, "r1", "r2")
    assert [(answer.run, answer.text, answer.objective_changed) for answer in first] == [
        ("r1", "thought 1", False),
        ("r2", "thought 1", False),
    ]
    assert first[0].source is ThoughtSource.COMMAND
    assert [answer.text for answer in told(voice, "r1", seconds=15)] == ["thought 2"]


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("print(json.dumps({'type': 'hello', 'protocol': 'any'}), flush=True)", ""),
        ("", "reply['request_id'] = int(reply.pop('id'))"),
        ("", "reply['updates'].insert(0, 'nonsense'); reply['updates'].insert(0, {'session_id': 5})"),
        ("", "reply['updates'].append({'session_id': 'never asked about', 'thought': 'x'})"),
        ("", "[each.pop('emission_seq') for each in reply['updates']]; reply.pop('stream_instance_id')"),
    ],
)
def test_it_may_greet_and_say_more_than_it_is_asked(voices: list[CommandVoice], before: str, inside: str) -> None:
    voices.append(voice := command(before, inside))
    assert [answer.text for answer in told(voice, "r1")] == ["thought 1"]


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("reply['id'] = '999'", "something else"),
        ("reply = {'type': 'error', 'id': asked['id']}", "something else"),
        ("reply = []", "cannot be read"),
        ("print('{', flush=True)", "cannot be read"),
        ("os._exit(1)", "has ended"),
    ],
)
def test_one_that_loses_its_place_is_started_again_after_a_while(
    voices: list[CommandVoice], tmp_path: object, inside: str, why: str
) -> None:
    mark = f"{tmp_path}/failed"
    once = f"if not os.path.exists({mark!r}): open({mark!r}, 'w').close(); exec({inside!r})"
    voices.append(voice := command("", once))
    voice.ask(question(), NOON)
    voice.answers(NOON)
    eventually(lambda: voice.answers(NOON) or voice.trouble)
    assert why in (voice.trouble or "")
    voice.ask(question(), NOON)
    # Not at once.
    assert voice.answers(at(0.1)) == []
    assert voice._asked == {}
    assert [answer.text for answer in eventually(lambda: voice.answers(at(1)))] == ["thought 1"]


def test_what_it_says_twice_or_too_late_is_dropped_and_a_restart_begins_anew(voices: list[CommandVoice]) -> None:
    voices.append(voice := command("", "for each in reply['updates']: each['emission_seq'] = max(1, 3 - number)"))
    assert told(voice, "r1")
    voice.ask(question(), at(15))
    voice.answers(at(15))
    eventually(lambda: not voice._asked or voice.answers(at(15)) or not voice._asked)
    assert not voice._asked
    assert voice._taken["r1"].seq == 2


def test_closing_ends_the_command_even_while_it_is_asked(voices: list[CommandVoice]) -> None:
    voice = command("", "import time; time.sleep(60)")
    voice.ask(question(), NOON)
    voice.answers(NOON)
    pid = eventually(lambda: voice._dialogue.pid if voice._dialogue else None)
    voice.close()
    assert not os.path.exists(f"/proc/{pid}")
    assert voice.answers(NOON) == []


def test_one_that_cannot_be_started_is_said(voices: list[CommandVoice]) -> None:
    config = ThoughtsConfig(source="command", command=("/nowhere/at/all",))
    voices.append(voice := CommandVoice(config, os.environ))
    voice.ask(question(), NOON)
    voice.answers(NOON)
    assert "cannot be started" in eventually(lambda: voice.answers(NOON) or voice.trouble or "")


def test_who_is_configured_is_asked() -> None:
    def kind(**given: Any) -> type[Voice | None]:
        return type(voice_of(ThoughtsConfig(**given), {}))

    assert kind() is type(None)
    assert kind(source="model", enabled=False) is type(None)
    assert kind(source="model", endpoint="https://x/v1", model="m") is ModelVoice
    assert kind(source="command", command=("x",)) is CommandVoice
