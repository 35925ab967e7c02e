"""Reading the first of a kind, from several threads at once: in a process of its own, for it may die of that."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from perdure.model.chat import Chat, Kinship
from perdure.model.decoding import converted, decoder_of

#: New kinds every time, for each is learnt only once.
THREADS = """
import importlib, itertools, sys, threading
from datetime import UTC, datetime
import msgspec
import perdure.model.chat as model
from perdure.model.decoding import converted, decoder_of
from perdure.store.chat_rows import decoded_as
from perdure.store.rows import decoded, packed
sys.setswitchinterval(1e-6)
noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
source = model.Source(platform="telegram", chat_id="1")
raw = msgspec.json.encode(model.Chat(id="a", key="k", source=source, opened_at=noon, touched_at=noon))
turn = itertools.count()
READING = {
    "chats": lambda kind: decoded_as(kind, raw),
    "records": lambda kind: decoded(kind, packed(raw)),
    "either": lambda kind: (decoder_of(kind).decode(raw), converted(msgspec.json.decode(raw), kind)),
    "both": lambda kind: decoded_as(kind, raw) if next(turn) % 2 else decoded(kind, packed(raw)),
}
read, wrong = READING[sys.argv[1]], []
def run(kind, barrier):
    barrier.wait()
    try:
        read(kind)
    except BaseException as error:
        wrong.append(error)
for _ in range(150):
    importlib.reload(model)
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=run, args=(model.Chat, barrier)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
sys.exit(repr(wrong[0]) if wrong else 0)
"""


@pytest.mark.parametrize("what", ["chats", "records", "either", "both"])
def test_threads_that_read_the_first_of_a_kind_at_once_all_get_it(what: str) -> None:
    done = subprocess.run([sys.executable, "-c", THREADS, what], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_may_read_what_its_parent_was_about_to() -> None:
    script = """
import os, threading
from perdure.model.decoding import decoder_of
from perdure.model import snapshot, chat, job
begun = threading.Thread(target=lambda: [decoder_of(kind) for kind in (snapshot.Snapshot, chat.Chat, job.Job)])
begun.start()
for _ in range(20):
    child = os.fork()
    if not child:
        decoder_of(chat.Chat)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
begun.join()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_what_is_read_is_what_it_is_said_to_be() -> None:
    assert decoder_of(Kinship).decode(b'"branch"') is Kinship.BRANCH
    assert decoder_of(list[int] | None).decode(b"[1]") == [1]
    assert decoder_of(Chat) is decoder_of(Chat)
    assert converted(["branch"], tuple[Kinship, ...]) == (Kinship.BRANCH,)
    assert converted("5", int, strict=False) == 5
    with pytest.raises(msgspec.ValidationError):
        converted("5", int)
