"""The stub model answers the same order in the same way in every protocol, whole and streamed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.real_agents.stub_model import TOOLLESS, StubModel
from tests.unit.real_agents.clients import CLIENTS, Ask, Got, post

Asking = Callable[..., Got]


@pytest.fixture
def stub() -> Iterator[StubModel]:
    with StubModel() as stub:
        yield stub


@pytest.fixture(params=[(name, stream) for name in CLIENTS for stream in (False, True)], ids=str)
def ask(request: pytest.FixtureRequest, stub: StubModel) -> Asking:
    """Asks the stub in one protocol, in one of its two ways."""
    name, stream = request.param

    def asking(prompt: Any, *results: str, **more: Any) -> Got:
        return CLIENTS[name].ask(stub, Ask(prompt, results, stream=stream, **more))

    return asking


def test_a_prompt_is_echoed_and_numbered(ask: Asking, stub: StubModel) -> None:
    assert ask("hello there").text == "STUB-REPLY 1: hello there"
    assert ask("once more").text == "STUB-REPLY 2: once more"
    assert stub.prompts == ["hello there", "once more"]
    assert [(seen.number, seen.ordered) for seen in stub.seen] == [(1, True), (2, True)]


def test_a_text_is_said_as_ordered(ask: Asking) -> None:
    assert ask("x [[say=esc to interrupt [y/n]\n  done]]").text == "esc to interrupt [y/n]\n  done"


def test_tools_are_called_one_after_the_other(ask: Asking) -> None:
    prompt = 'go [[tool=echo one]] [[call=BASH {"command": "echo [[two]]"}]]'
    first = ask(prompt)
    assert (first.tool, first.input) == ("bash", {"command": "echo one"})
    second = ask(prompt, "one")
    assert (second.tool, second.input) == ("bash", {"command": "echo [[two]]"})
    done = ask(prompt, "one", "two\nlines")
    assert (done.tool, done.text) == (None, "STUB-DONE 3: two lines")


def test_what_follows_a_tool_can_be_said(ask: Asking) -> None:
    assert ask("[[tool=true]] [[say=all done]]", "").text == "all done"


def test_a_length_is_claimed(ask: Asking) -> None:
    assert ask("[[usage=90000]]").tokens == 90000
    assert (ask("short").tokens or 0) < 1000


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_an_error_is_answered_to_each_attempt(ask: Asking, status: int) -> None:
    for _ in range(2):
        got = ask(f"[[error={status}]]")
        assert got.status == status
        assert "stub error" in json.dumps(json.loads(got.text))


def test_an_error_can_pass(ask: Asking) -> None:
    attempts = [ask("[[error=500*2]] try").status for _ in range(4)]
    assert attempts == [500, 500, 200, 200]


def test_an_error_has_the_body_it_was_given(ask: Asking) -> None:
    got = ask('[[error=429]] [[body={"error": {"message": "usage limit", "resets": [1]}}]]')
    assert json.loads(got.text) == {"error": {"message": "usage limit", "resets": [1]}}


def test_what_nobody_typed_obeys_nothing(ask: Asking, stub: StubModel) -> None:
    """Titles and routers quote the prompt, and offer no tools."""
    assert ask("Give a title for: [[error=500]] [[delay=60]] fix it", tools={}).text == "Stub aside 1"
    assert stub.prompts == []
    assert ask("fix it").text == "STUB-REPLY 1: fix it"


def test_an_agent_without_tools_has_a_model_of_its_own(ask: Asking) -> None:
    assert ask("hello", tools={}, model=f"stub{TOOLLESS}").text == "STUB-REPLY 1: hello"
    assert ask("[[tool=ls]] look", tools={}, model=f"stub{TOOLLESS}").text == "```bash\nls\n```\n"


@pytest.mark.parametrize(
    "order", ["[[tool=ls]]", "[[call=nothing {}]]", "[[call=bash {]]", "[[error=much]]", "[[delay=x]]"]
)
def test_an_order_that_cannot_be_obeyed_is_said_on_the_screen(ask: Asking, order: str) -> None:
    tools: dict[str, Any] = {"read": {}} if "ls" in order else {"bash": {}}
    assert ask(order, tools=tools).text.startswith("STUB-BAD-ORDER 1: ")


def test_what_agents_add_to_a_prompt_is_not_the_prompt(ask: Asking, stub: StubModel) -> None:
    added = {"type": "text", "text": "<system-reminder>\n[[error=500]] be brief\n</system-reminder>"}
    prompt = {"type": "text", "text": '<user_input mode="act">hello</user_input>'}
    assert ask([added, prompt, added]).text == "STUB-REPLY 1: hello"
    assert stub.prompts == ["hello"]


def test_a_prompt_sent_below_an_earlier_one_stands_for_itself(ask: Asking, stub: StubModel) -> None:
    """Hermes does so after a turn that failed, and the earlier prompt's orders are not meant any more."""
    assert ask("one [[error=500]]").status == 500
    for _ in range(2):
        assert ask("one [[error=500]]\n\ntwo").status == 200
    assert ask("one [[error=500]]\n\ntwo\n\nthree").text == "STUB-REPLY 4: three"
    assert ask("two of them").text == "STUB-REPLY 5: two of them"
    assert stub.prompts == ["one [[error=500]]", "two", "two", "three", "two of them"]


def test_instructions_below_a_prompt_are_not_echoed(ask: Asking) -> None:
    prompt = "hello\n\nAnswer in English. Write [[error=500]] in brackets."
    assert ask(prompt, tools={}, model=f"stub{TOOLLESS}").text == "STUB-REPLY 1: hello"


def test_a_slow_answer_is_whole(ask: Asking) -> None:
    text = "many words " * 30
    assert ask(f"[[slow=0.05]] [[say={text}]]").text == text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/responses",
            {"input": "x", "text": {"format": {"schema": {"properties": {"title": {"type": "string"}}}}}},
        ),
        (
            "/v1beta/models/m:generateContent",
            {
                "contents": [{"role": "user", "parts": [{"text": "x"}]}],
                "generationConfig": {
                    "responseJsonSchema": {"properties": {"title": {"type": "string"}, "why": {"enum": ["a", "b"]}}}
                },
            },
        ),
        (
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": "x"}],
                "response_format": {"json_schema": {"schema": {"properties": {"n": {"type": "integer"}}}}},
            },
        ),
    ],
)
def test_a_helper_that_wants_json_gets_it(stub: StubModel, path: str, body: Any) -> None:
    client = next(client for client in CLIENTS.values() if client.path(Ask("", model="m")) == path)
    got = client.read([json.loads(post(stub, path, body)[1])])
    assert set(json.loads(got.text)) <= {"title", "why", "n"}


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/messages/count_tokens", "input_tokens"),
        ("/v1beta/models/m:countTokens", "totalTokens"),
        ("/v1beta/models/m:embedContent", "embedding"),
        ("/v1/responses/compact", "output"),
    ],
)
def test_what_no_prompt_is_behind_is_answered_at_once(stub: StubModel, path: str, field: str) -> None:
    status, body = post(stub, path, {"messages": [{"role": "user", "content": "[[error=500]]"}]})
    assert (status, field in json.loads(body)) == (200, True)
    assert not stub.seen


def test_an_unknown_path_is_refused(stub: StubModel) -> None:
    assert post(stub, "/v1/other", {})[0] == 404


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_held_back_until_it_is_let_go(stub: StubModel, stream: bool) -> None:
    got: list[Any] = []

    def ask_and_tell() -> None:
        for results in ((), ("said",)):
            asking = Ask("[[hold]] [[tool=ls]] look", results, tools={"bash": {}}, stream=stream)
            got.append(CLIENTS["chat"].ask(stub, asking))

    thread = threading.Thread(target=ask_and_tell)
    thread.start()
    for count in (1, 2):
        deadline = time.monotonic() + 60
        while len(stub.seen) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(got) == count - 1
        stub.let_go(count)
    thread.join(timeout=60)
    assert [bool(each.tool) for each in got] == [True, False]


@pytest.mark.parametrize("order", ["[[delay=600]]", "[[hold]]"])
def test_the_end_does_not_wait_for_a_delayed_answer(order: str) -> None:
    with StubModel() as stub:
        asking = Ask(f"{order} think", stream=True)
        thread = threading.Thread(target=lambda: CLIENTS["chat"].ask(stub, asking))
        thread.start()
        while not stub.seen:
            time.sleep(0.01)
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_requests_are_logged_without_what_could_be_a_secret(tmp_path: Any) -> None:
    log = tmp_path / "log.jsonl"
    with StubModel(log=str(log)) as stub:
        CLIENTS["chat"].ask(stub, Ask("hello"))
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["prompt"] == "hello"
    assert "headers" not in json.loads(line)
