"""What other gateways' users have met, and must not meet here."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.chats.ownership import Asker
from perdure.chats.service import Chats
from perdure.model.chat import CloseReason, ResetMode, ResetPolicy
from perdure.model.config import ChatKeysConfig, ChatsConfig, Config
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn
from tests.contract.store.conftest import Place

ALICE, BOB = a_source("alice"), a_source("bob")
IDLE = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)


@pytest.fixture
def clock() -> Clock:
    """It is noon."""
    return Clock()


@pytest.fixture
def chats(threaded: Store, clock: Clock) -> Chats:
    """Chats that go stale after an hour."""
    return Chats(threaded.chats, Config(chats=ChatsConfig(reset=IDLE)), clock)


def test_what_two_processes_change_in_one_chat_is_changed_twice(opened: Callable[[], Store], clock: Clock) -> None:
    one, other = (Chats(opened().chats, Config(), clock) for _ in range(2))
    id = one.open(ALICE).id
    # Both have read it before either changes it.
    assert one.store.get_chat(id) == other.store.get_chat(id)
    one.set_title(ALICE, id, "Roof")
    other.add_tokens(id, "m", input=3)
    one.append(id, a_turn("a"))
    other.append(id, a_turn("b"))
    one.add_tokens(id, "m", output=4)
    for process in (one, other):
        chat = process.store.get_chat(id)
        assert (chat.title, chat.tokens.total, chat.turns) == ("Roof", 7, 2)
        assert [turn.content for turn in process.load(id).turns] == ["a", "b"]


def test_a_store_that_was_locked_at_first_is_used_as_soon_as_it_can_be(
    place: Place, chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not place.url.startswith("sqlite"):
        pytest.skip("a PostgreSQL server makes those wait who come at once")
    monkeypatch.setattr("perdure.store.sqlite.PATIENCE", 0.1)
    other = place.open()
    with other.driver.transaction(), pytest.raises(errors.StoreUnusable, match="locked"):
        # The first thing that is ever asked of it.
        Chats(place.open().chats, Config(), chats.now).open(ALICE)
    late = place.open()
    id = Chats(late.chats, Config(), chats.now).open(ALICE).id
    assert chats.append(id, a_turn("a")) == 1
    for store in (other, late):
        store.close()


def test_two_bots_and_one_person_are_two_conversations(threaded: Store, clock: Clock) -> None:
    keys = ChatKeysConfig(multiplex_profiles=True)
    chats = Chats(threaded.chats, Config(chats=ChatsConfig(keys=keys)), clock)
    work, home = (replace(ALICE, profile=name) for name in ("work", "home"))
    first, second = chats.open(work), chats.open(home)
    assert first.id != second.id
    chats.set_title(work, first.id, "Plan")
    assert chats.set_title(home, second.id, "Plan").title == "Plan"
    chats.reset(work)
    assert chats.resume(work, "Plan").id == first.id
    with pytest.raises(errors.Refused):
        chats.resume(home, first.id)
    assert [chat.id for chat in chats.list(home)] == [second.id]


@pytest.mark.parametrize("lacking", [{"platform": ""}, {"user_id": None}])
def test_a_record_that_does_not_say_whose_it_is_is_nobodys(chats: Chats, lacking: dict[str, object]) -> None:
    chats.store.begin_chat(a_chat("c1", source=replace(ALICE, **lacking), title="Plan"))
    for asker in (ALICE, BOB, replace(ALICE, **lacking), replace(ALICE, chat_id="", user_id=None)):
        with pytest.raises(errors.Refused):
            chats.get(asker, "c1")
        with pytest.raises(errors.PerdureError):
            chats.resume(asker, "Plan")
        assert chats.list(asker) == ()
        assert not chats.owns(asker, chats.store.get_chat("c1"))
    assert chats.get(Asker.OPERATOR, "c1").title == "Plan"


def test_why_a_chat_was_closed_stays_and_one_that_is_resumed_is_closed_anew(chats: Chats, clock: Clock) -> None:
    first = chats.open(ALICE)
    chats.append(first.id, a_turn())
    clock.later(hours=2)
    second = chats.open(ALICE)
    closed = chats.store.get_chat(first.id)
    chats.suspend(first.id)
    chats.mark_resume_pending(first.id)
    chats.reset(ALICE)
    with pytest.raises(errors.Conflict):
        chats.renew(ALICE, first.id)
    found = chats.store.get_chat(first.id)
    assert (found.close_reason, found.closed_at) == (CloseReason.IDLE, closed.closed_at)
    clock.later(minutes=1)
    chats.resume(ALICE, first.id)
    chats.reset(ALICE)
    found = chats.store.get_chat(first.id)
    assert (found.close_reason, found.closed_at) == (CloseReason.ASKED, clock())
    assert chats.store.get_chat(second.id).close_reason is CloseReason.ASKED


def test_the_first_model_that_is_told_stays_the_models_chat(chats: Chats) -> None:
    id = chats.open(ALICE).id
    assert chats.store.get_chat(id).model is None
    chats.add_tokens(id, "m1", input=200, output=100)
    chats.add_tokens(id, "m2", input=1)
    chat = chats.store.get_chat(id)
    assert (chat.model, chat.tokens.total, chat.by_model["m1"].total) == ("m1", 301, 300)


def test_a_number_within_a_title_is_a_part_of_it(chats: Chats) -> None:
    title = "PR #438 — fix the roof's (north) side & gutter"
    id = chats.open(ALICE).id
    chats.set_title(ALICE, id, title)
    chats.reset(ALICE)
    assert chats.resume(ALICE, title).id == id
    chats.reset(ALICE)
    with pytest.raises(errors.ChatNotFound):
        chats.resume(ALICE, "PR")


def test_two_turns_at_once_do_not_take_each_other_for_themselves(chats: Chats) -> None:
    people = [a_source(f"person-{number}") for number in range(8)]

    def talk(number: int) -> None:
        for round in range(5):
            chat = chats.open(people[number])
            chats.append(chat.id, a_turn([number, round]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(talk, range(8)))
    for number, source in enumerate(people):
        (mine,) = chats.list(source)
        assert [turn.content for turn in chats.load(mine.id).turns] == [[number, round] for round in range(5)]


def test_only_a_policy_that_somebody_has_set_ever_ends_a_chat(threaded: Store, clock: Clock) -> None:
    chats = Chats(threaded.chats, Config(), clock)
    first = chats.open(ALICE)
    clock.later(days=365)
    assert chats.open(ALICE).id == first.id
