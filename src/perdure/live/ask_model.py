"""Asking a model for a line about a run: an endpoint that speaks as OpenAI's or Anthropic's does, in a thread of its own.

The key is read from the environment when it is needed, goes into one header, and nowhere else: no failure repeats what was
sent or what came back.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec
from msgspec import Struct

from perdure.live.cadence import Backoff, Purse
from perdure.live.question import INSTRUCTIONS, Answer, Question, answer_line
from perdure.model.config import ThoughtsConfig
from perdure.model.thought import ThoughtSource

_PATIENCE = 15.0
_MOST_TOKENS = 80
_LARGEST = 1 << 20
_MOST_WAITING = 8
_MILLION = 1_000_000
#: A prompt has at most as many tokens as it has characters, by this.
_CHARACTERS_A_TOKEN = 2


class _Said(Struct, frozen=True, kw_only=True):
    """What came of a question: an answer, or why there is none."""

    question: Question
    held: float
    text: str | None = None
    trouble: str | None = None
    #: Tokens in and out; None when the endpoint does not say.
    used: tuple[int, int] | None = None


class ModelVoice:
    """`Voice` of a model. Asked and listened to from one thread; the calls are made in another, one after the other."""

    def __init__(self, config: ThoughtsConfig, environ: Mapping[str, str], *, patience: float = _PATIENCE) -> None:
        self._config = config
        self._environ = environ
        self._patience = patience
        self._purse = Purse(calls_per_hour=config.max_calls_per_hour, cost_per_day=config.max_cost_per_day)
        self._backoff = Backoff(30, 600)
        self._waiting: queue.SimpleQueue[tuple[Question, float] | None] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[_Said] = queue.SimpleQueue()
        self._open = 0
        self._thread: threading.Thread | None = None
        #: Why the last question has no answer; None when it has one.
        self.trouble: str | None = None

    def ask(self, question: Question, now: datetime) -> bool:
        """Ask, unless that is too much, too often, or was of no use just before; return whether it was asked."""
        if self._open >= _MOST_WAITING or not self._backoff.is_over(now):
            return False
        if self._config.key_variable and not self._environ.get(self._config.key_variable):
            self.trouble = f"The variable {self._config.key_variable} is not set."
            return False
        held = self._price(len(INSTRUCTIONS + question.prompt) // _CHARACTERS_A_TOKEN, _MOST_TOKENS)
        if not self._purse.hold(held, now):
            self.trouble = "As many questions were asked, or as much was spent, as the configuration allows."
            return False
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="thoughts", daemon=True)
            self._thread.start()
        self._open += 1
        self._waiting.put((question, held))
        return True

    def answers(self, now: datetime) -> list[Answer]:
        """Return what was answered since the last time."""
        found = []
        while not self._said.empty():
            said = self._said.get()
            self._open -= 1
            # A call that failed may have cost something, or nothing: what was held back for it is taken for spent.
            self._purse.settle(said.held, self._price(*said.used) if said.used else said.held, now)
            self.trouble = said.trouble
            if said.trouble is not None:
                self._backoff.failed(now)
                continue
            self._backoff.succeeded()
            if (text := answer_line(said.text)) is not None:
                question = said.question
                found.append(
                    Answer(run=question.run, fingerprint=question.fingerprint, text=text, source=ThoughtSource.MODEL)
                )
        return found

    def close(self) -> None:
        """Ask nothing more; an answer that is still to come is not waited for."""
        self._waiting.put(None)

    def _price(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self._config.price_in + tokens_out * self._config.price_out) / _MILLION

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            question, held = waiting
            try:
                text, used = self._call(question.prompt)
                self._said.put(_Said(question=question, held=held, text=text, used=used))
            except Exception as error:
                self._said.put(_Said(question=question, held=held, trouble=_sentence(error)))

    def _call(self, prompt: str) -> tuple[str | None, tuple[int, int] | None]:
        url, headers, body = request_of(self._config, prompt, self._environ.get(self._config.key_variable, ""))
        request = Request(url, data=msgspec.json.encode(body), headers=headers, method="POST")
        with build_opener(_Nowhere).open(request, timeout=self._patience) as response:
            return read_answer(response.read(_LARGEST))


class _Nowhere(HTTPRedirectHandler):
    """Follows nobody elsewhere: the key would go there too."""

    def redirect_request(self, *_: object) -> None:
        """Return no request."""


def request_of(config: ThoughtsConfig, prompt: str, key: str) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Return address, headers and body of a call."""
    headers = {"Content-Type": "application/json", "User-Agent": "perdure"}
    body: dict[str, Any] = {"model": config.model, "max_tokens": _MOST_TOKENS}
    user = {"role": "user", "content": prompt}
    base = config.endpoint.rstrip("/")
    if config.api == "anthropic":
        headers |= {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})
        return f"{base}/messages", headers, body | {"system": INSTRUCTIONS, "messages": [user]}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    return f"{base}/chat/completions", headers, body | {"messages": [{"role": "system", "content": INSTRUCTIONS}, user]}


def read_answer(raw: bytes) -> tuple[str | None, tuple[int, int] | None]:
    """Return the text of an answer of either kind, and the tokens it took. Raises ValueError when it is neither."""
    document = msgspec.json.decode(raw)
    if not isinstance(document, dict):
        raise ValueError
    usage = document.get("usage")
    used = _used(usage) if isinstance(usage, dict) else None
    blocks, choices = document.get("content"), document.get("choices")
    if isinstance(blocks, list):
        return "\n".join(
            block["text"] for block in blocks if isinstance(block, dict) and _is_text(block.get("text"))
        ), used
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        raise ValueError
    message = choices[0].get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else None, used


def _used(usage: Mapping[str, object]) -> tuple[int, int] | None:
    for names in (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")):
        counts = [count for name in names if isinstance(count := usage.get(name), int) and count >= 0]
        if len(counts) == len(names):
            return counts[0], counts[1]
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _sentence(error: Exception) -> str:
    """Say what went wrong without repeating anything that was sent or came back."""
    if isinstance(error, HTTPError):
        error.close()
        return f"The endpoint answered with status {error.code}."
    if isinstance(error, TimeoutError):
        return "The endpoint did not answer in time."
    if isinstance(error, OSError):
        reason = getattr(error, "reason", error)
        timed_out = isinstance(reason, TimeoutError)
        return "The endpoint did not answer in time." if timed_out else "The endpoint cannot be reached."
    return "The endpoint's answer cannot be read."
