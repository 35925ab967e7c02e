"""Chats: appending, opening, loading and searching, by perdure, by hermes-agent and by SQLite alone."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from bench.chatting import corpus, pages, shelf
from bench.chatting.hands import BARE, HERMES, PERDURE, Hand, Peers
from bench.results import ChatLine, Chats
from bench.sandbox import BenchFailed, Sandbox
from bench.timing import Step, Timing, interleave
from scripts import real_agents

WRITERS = 8
APPEND, THREADS, PROCESSES = "append", f"append, {WRITERS} threads", f"append, {WRITERS} processes"
SEARCHABLE = "append, until it can be found"
LOAD = "load, 10000 turns"
SEARCH = "search, "
#: The same with nothing of the store in memory.
COLD = "cold search, "
#: When memory is looked at.
FIRST, LATER = "appending, at first", "appending, at most later"
#: For how many rounds, however many are timed: what a turn leaves behind shows only after very many.
_LATEST = 40
CROWDS = (100, 1_000, 10_000)
#: How many appends are one sample: of one writer, and of each of several.
_ALONE, _EACH = 100, 50
#: How many are made before: until a database's log has its full size every flush of it writes the file system's books, too,
#: which is over soon in a store that is kept for weeks. The same for everybody.
_BEFORE = 1_500
#: How many chats are opened in one sample, and how many by one to whom each takes the longer the more there are.
_OPENED, _OPENED_SLOWLY = 20, {100: 20, 1_000: 5, 10_000: 2}
#: How many turns are in the chat that is loaded, and in how many others the rest is.
LONG, _OTHERS = 10_000, 2_000
#: How often each kind is searched for in the cold, at most: every time the disk is read and a process started.
_COLD_ROUNDS = 5
#: How much of a store may be in memory that is said not to be, or not be where it is said to be.
_SOME = 0.02
#: Which Python a peer's own environment has.
_PYTHON = os.path.join("bin", "python")


def opening(crowd: int) -> str:
    """Return what opening a chat among so many is called."""
    return f"open, among {crowd}"


def measure(place: Sandbox, home: Mapping[str, str], *, rounds: int, turns: int) -> Chats:
    """Measure everything; `home` is the environment of whoever started the run, with its caches."""
    agent = real_agents.AGENTS["hermes"]
    cache = real_agents.cache_directory(home)
    missing = agent.missing(cache)
    if missing is not None:
        print(f"hermes-agent is not compared: {missing}", file=sys.stderr, flush=True)
    peers = Peers(place.environ, None if missing else os.path.join(agent.directory(cache), _PYTHON))
    lines: list[ChatLine] = []
    memory: dict[str, dict[str, int]] = {}
    for part in (_appends, _opens):
        with part(peers, place, memory) as steps:
            lines += _lines(interleave(steps, rounds))
    cache = shelf.cache_directory(home)
    stores = {
        peer: shelf.filled(peers, peer, cache, turns=turns, chats=_OTHERS + 1, long=min(LONG, turns))
        for peer in peers.gateways
    }
    lines += _reads(peers, stores, memory, rounds=rounds, turns=turns)
    lines += _cold(peers, stores, rounds=min(rounds, _COLD_ROUNDS))
    return Chats(turns=turns, peer=None if missing else agent.version, lines=tuple(lines), memory=memory)


def _lines(timings: Mapping[str, Timing]) -> Iterator[ChatLine]:
    for name, timing in timings.items():
        peer, _, what = name.partition(": ")
        yield ChatLine(what=what, peer=peer, timing=timing)


@contextmanager
def _appends(peers: Peers, place: Sandbox, memory: dict[str, dict[str, int]]) -> Iterator[Mapping[str, Step]]:
    """Every way of appending. What is indexed later is indexed before it is anybody else's turn."""
    with ExitStack() as stack:
        steps: dict[str, Step] = {}
        held: dict[str, list[int]] = {}
        for peer in peers.pythons:
            hand, *others = stack.enter_context(peers.hands(peer, place.directory(f"chats-{peer}"), 1 + WRITERS))
            hand.do("begin", chats=WRITERS)
            hand.do("append", chat=0, count=_BEFORE)
            hand.do("settle")
            held[peer] = []
            steps[f"{peer}: {APPEND}"] = _alone(hand, held[peer])
            if peer == PERDURE:
                steps[f"{peer}: {SEARCHABLE}"] = _searchable(hand)
            steps[f"{peer}: {THREADS}"] = _threads(hand)
            steps[f"{peer}: {PROCESSES}"] = _processes(others)
        yield steps
        for peer, sizes in held.items():
            own = [step for name, step in steps.items() if name.startswith(f"{peer}: ")]
            while len(sizes) <= _LATEST:
                for step in own:
                    step()
            # Not before everything was done once: each thread that ever wrote has a connection.
            # And then the most of all rounds: in the last alone it would be luck whether something was given back just before.
            memory[peer] = {FIRST: sizes[1], LATER: max(sizes[2:])}


def _alone(hand: Hand, held: list[int]) -> Step:
    def step() -> float:
        seconds = float(hand.do("append", chat=0, count=_ALONE))
        hand.do("settle")
        held.append(hand.memory)
        return seconds

    return step


def _searchable(hand: Hand) -> Step:
    return lambda: float(hand.do("append", chat=0, count=_ALONE)) + float(hand.do("settle")) / _ALONE


def _threads(hand: Hand) -> Step:
    def step() -> float:
        seconds = float(hand.do("append_threads", threads=WRITERS, count=_EACH))
        hand.do("settle")
        return seconds

    return step


def _processes(hands: Sequence[Hand]) -> Step:
    """Append by all of them at once, each to its own chat; the seconds until the last is done, for each turn."""

    def step() -> float:
        start = time.perf_counter()
        for chat, hand in enumerate(hands):
            hand.ask("append", chat=chat, count=_EACH)
        for hand in hands:
            hand.answer()
        seconds = time.perf_counter() - start
        hands[0].do("settle")
        return seconds / (len(hands) * _EACH)

    return step


@contextmanager
def _opens(peers: Peers, place: Sandbox, memory: dict[str, dict[str, int]]) -> Iterator[Mapping[str, Step]]:
    with ExitStack() as stack:
        steps: dict[str, Step] = {}
        hands: dict[tuple[str, int], Hand] = {}
        for crowd in CROWDS:
            for peer in peers.gateways:
                directory = place.directory(f"crowd-{peer}")
                with peers.hands(peer, directory) as (maker,):
                    maker.do("begin", chats=crowd)
                # Another process, that has not seen them all just now.
                (hand,) = stack.enter_context(peers.hands(peer, directory))
                hands[peer, crowd] = hand
                steps[f"{peer}: {opening(crowd)}"] = _opening(hand, crowd)
        yield steps
        for (peer, crowd), hand in hands.items():
            memory[peer][opening(crowd)] = hand.memory


def _opening(hand: Hand, crowd: int) -> Step:
    place = 0

    def step() -> float:
        nonlocal place
        count = _OPENED_SLOWLY[crowd] if hand.peer == HERMES else _OPENED
        chosen = [(place + each) * 37 % crowd for each in range(count)]
        place += count
        return float(hand.do("open", chats=chosen))

    return step


def _reads(
    peers: Peers, stores: Mapping[str, str], memory: dict[str, dict[str, int]], *, rounds: int, turns: int
) -> list[ChatLine]:
    with ExitStack() as stack:
        steps: dict[str, Step] = {}
        hands: list[Hand] = []
        kinds = queries(rounds + 1)
        for peer, directory in stores.items():
            (hand,) = stack.enter_context(peers.hands(peer, directory))
            hands.append(hand)
            # One that an earlier version has kept may have to be indexed anew.
            hand.do("settle")
            steps[f"{peer}: {LOAD}"] = _loading(hand, min(LONG, turns))
        for kind, asked in kinds.items():
            for hand in hands:
                steps[f"{hand.peer}: {SEARCH}{kind}"] = _searching(hand, asked)
        for directory in stores.values():
            pages.bring_in(directory)
        for peer, directory in stores.items():
            if (share := pages.share_in(directory)) < 1 - _SOME:
                print(
                    f"{peer}: only {share:.0%} of its store is in memory, for all there is", file=sys.stderr, flush=True
                )
        found = list(_lines(interleave(steps, rounds)))
        for hand in hands:
            memory[hand.peer]["loading and searching"] = hand.memory
        return found


def _cold(peers: Peers, stores: Mapping[str, str], *, rounds: int) -> list[ChatLine]:
    """Searches that have to read everything from the disk. Nobody has the stores open by now; there are none where the disk is memory."""
    for peer, directory in stores.items():
        pages.take_out(directory)
        if (share := pages.share_in(directory)) > _SOME:
            told = f"{share:.0%} of the store of {peer} stays in memory whatever is done"
            print(f"nothing is searched in the cold: {told}", file=sys.stderr, flush=True)
            return []
    steps = {
        f"{peer}: {COLD}{kind}": _searching_cold(peers, peer, directory, asked)
        for kind, asked in queries(rounds).items()
        for peer, directory in stores.items()
    }
    return list(_lines(interleave(steps, rounds, uncounted=0)))


def _searching_cold(peers: Peers, peer: str, directory: str, asked: Sequence[Mapping[str, str]]) -> Step:
    """The first search of a process that was just started: what it has in memory itself, another one would not find there."""
    left = list(asked)

    def step() -> float:
        pages.take_out(directory)
        with peers.hands(peer, directory) as (hand,):
            return _searching(hand, [left.pop()])()

    return step


def _loading(hand: Hand, turns: int) -> Step:
    return lambda: float(hand.do("load", turns=turns))


def _searching(hand: Hand, asked: Sequence[Mapping[str, str]]) -> Step:
    place = 0

    def step() -> float:
        nonlocal place
        place += 1
        seconds, found = hand.do("search", **asked[place % len(asked)])
        if found == 0 and "role" not in asked[0]:
            raise BenchFailed(f"{hand.peer} found nothing for {asked[place % len(asked)]}")
        return float(seconds)

    return step


def queries(count: int) -> dict[str, list[dict[str, str]]]:
    """What is searched for, by kind: of each as many, all different."""
    word, pairs = corpus.word, corpus.pairs(count)
    each = range(count)
    return {
        "a rare word": [{"query": word(10_000 + n)} for n in each],
        "a common word": [{"query": word(20 + n)} for n in each],
        "a word of every other turn": [{"query": word(n % 3)} for n in each],
        "two words": [{"query": f"{word(20 + n)} {word(200 + n)}"} for n in each],
        "a phrase": [{"query": f'"{pairs[n]}"'} for n in each],
        "a beginning": [{"query": f"{word(300 + n)[:3]}*"} for n in each],
        "one of two words": [{"query": f"{word(20 + n)} OR {word(300 + n)}"} for n in each],
        "a word without another": [{"query": f"{word(20 + n)} NOT {word(n % 3)}"} for n in each],
        "a word of a role": [{"query": word(20 + n), "role": "tool"} for n in each],
        "a word of a role nobody has": [{"query": word(20 + n), "role": "nobody"} for n in each],
        "a word on a platform": [{"query": word(20 + n), "platform": "slack"} for n in each],
    }


__all__ = [
    "APPEND",
    "BARE",
    "COLD",
    "CROWDS",
    "FIRST",
    "HERMES",
    "LATER",
    "LOAD",
    "PERDURE",
    "PROCESSES",
    "SEARCH",
    "SEARCHABLE",
    "THREADS",
    "measure",
    "opening",
]
