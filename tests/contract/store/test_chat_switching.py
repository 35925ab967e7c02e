"""Going on with another chat while somebody else opens, resets, shortens or switches one: nobody is in the way of anybody."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import cycle, islice
from typing import Any, cast

from msgspec.structs import replace

from perdure import errors
from perdure.chats.service import Chats
from perdure.model.chat import Chat, CloseReason, KeyRules, Source
from perdure.model.config import ChatKeysConfig, ChatsConfig, Config
from perdure.model.event import EventKind
from perdure.ports import ChatStore
from perdure.store import open_store
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_turn
from tests.contract.store.conftest import Place

#: Two people who write under the id of one chat.
ANN, BOB = (Source(platform="slack", chat_id="C9", user_id=user) for user in ("U1", "U2"))
ROUNDS = 20


class Meanwhile:
    """A store in which something else happens once, right before a verb."""

    def __init__(self, store: ChatStore, verb: str, happens: Callable[[], object]) -> None:
        self._store = store
        self._verb = verb
        self._happens: list[Callable[[], object]] = [happens]

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)

        def late(*args: Any, **settings: Any) -> Any:
            if self._happens:
                self._happens.pop()()
            return verb(*args, **settings)

        return late if name == self._verb else verb


def service(store: ChatStore, *, rules: KeyRules = KeyRules.ISOLATED) -> Chats:
    return Chats(store, Config(chats=ChatsConfig(keys=ChatKeysConfig(rules=rules))), Clock())


def meanwhile(store: Store, verb: str, happens: Callable[[], object]) -> Chats:
    return service(cast("ChatStore", Meanwhile(store.chats, verb, happens)))


def test_whoever_goes_on_with_a_chat_closes_nobody_elses_that_was_begun_meanwhile(threaded: Store) -> None:
    chats = service(threaded.chats)
    # It was begun under other rules, so the key is nobody's yet.
    old = service(threaded.chats, rules=KeyRules.PER_PLATFORM).open(ANN)
    bobs: list[Chat] = []
    switched = meanwhile(threaded, "switch_chat", lambda: bobs.append(chats.open(BOB))).switch(ANN, old.id)
    assert switched.id == old.id
    assert chats.open(BOB).id == bobs[0].id
    assert chats.open(ANN).id == old.id


def test_whoever_begins_a_copy_closes_nobody_elses_that_was_begun_meanwhile(threaded: Store) -> None:
    chats = service(threaded.chats)
    elsewhere = replace(ANN, chat_id="C1")
    old = chats.open(elsewhere)
    chats.append(old.id, a_turn("tiles"))
    chats.grant(elsewhere, old.id, ANN)
    bobs: list[Chat] = []
    copy = meanwhile(threaded, "begin_chat", lambda: bobs.append(chats.open(BOB))).switch(ANN, old.id)
    assert chats.open(BOB).id == bobs[0].id
    assert chats.open(ANN).id == copy.id
    assert [turn.content for turn in chats.load(copy.id).turns] == ["tiles"]
    assert chats.load(bobs[0].id).turns == ()


def test_what_was_made_shorter_meanwhile_is_gone_on_with_where_it_goes_on(threaded: Store) -> None:
    chats = service(threaded.chats)
    in_thread = replace(ANN, thread_id="7")
    first = chats.open(in_thread)
    chats.set_title(in_thread, first.id, "Roof")
    chats.append(first.id, a_turn("tiles"))
    chats.reset(in_thread)
    shorter: list[Chat] = []

    def compress() -> None:
        chats.switch(in_thread, first.id)
        shorter.append(chats.compress(first.id, [a_turn("in short: tiles")]))
        chats.reset(in_thread)

    resumed = meanwhile(threaded, "switch_chat", compress).resume(in_thread, first.id)
    assert resumed.id == shorter[0].id
    assert threaded.chats.get_chat(first.id).close_reason is CloseReason.COMPRESSED


def test_a_reset_meanwhile_is_as_if_it_had_come_before(threaded: Store) -> None:
    chats = service(threaded.chats)
    first = chats.open(ANN)
    chats.reset(ANN)
    fresh: list[Chat] = []
    assert (
        meanwhile(threaded, "switch_chat", lambda: fresh.append(chats.reset(ANN))).switch(ANN, first.id).id == first.id
    )
    assert threaded.chats.get_chat(fresh[0].id).close_reason is CloseReason.SWITCHED
    assert [chat.id for chat in threaded.chats.list_chats(is_open=True)] == [first.id]


def test_the_store_switches_only_what_is_as_it_was_looked_at(store: Store) -> None:
    chats, book = service(store.chats), store.chats
    first = chats.open(ANN)
    second = chats.reset(ANN)
    closed = book.get_chat(first.id)
    at = chats.now()
    assert book.switch_chat(closed, closed.key, at, instead_of=None) is None
    assert book.switch_chat(first, closed.key, at, instead_of=second) is None
    assert book.open_chat(closed.key) == second
    switched = book.switch_chat(closed, closed.key, at, instead_of=second)
    assert switched is not None
    assert switched.is_open


def do(chats: Chats, who: Source, what: str, known: list[str]) -> str:
    if what == "open":
        return chats.open(who).id
    if what == "reset":
        return chats.reset(who).id
    if what == "branch":
        return chats.branch(who, known[0]).id
    if what == "compress":
        return chats.compress(chats.open(who).id, [a_turn("short")]).id
    return chats.resume(who, known[-1 if what == "last" else 0]).id


def test_two_people_do_all_of_it_at_once_from_two_processes_and_stay_apart(place: Place) -> None:
    what = ["open", "reset", "first", "branch", "last", "compress"]

    def busy(process: int, who: Source, begin: int) -> list[str]:
        with closing(open_store(place.url, state_dir=place.state_dir, threads=True)) as store:
            chats = service(store.chats)
            known = [chats.open(who).id]
            for each in islice(cycle(what), begin, begin + ROUNDS):
                # Somebody else of the same person was quicker to make it shorter.
                with suppress(errors.Conflict):
                    known.append(do(chats, who, each, known))
        return known

    jobs = [(process, who, process + (who is BOB)) for process in range(2) for who in (ANN, BOB)]
    with ThreadPoolExecutor(len(jobs)) as pool:
        got = list(pool.map(lambda job: busy(*job), jobs))
    store = place.open()
    with closing(store):
        whose = {chat.id: chat.source.user_id for chat in store.chats.list_chats()}
        for (_, who, _), ids in zip(jobs, got, strict=True):
            assert {whose[id] for id in ids} == {who.user_id}
        assert sorted(str(chat.source.user_id) for chat in store.chats.list_chats(is_open=True)) == ["U1", "U2"]
        closings = store.read_events(limit=100_000, kinds=[EventKind.CHAT_CLOSED])
        assert closings
        for stored in closings:
            assert whose[stored.event.data["chat"]] == whose[stored.event.data["successor"]]
