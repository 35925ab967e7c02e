"""Which chat the operator means, and pruning, over both databases."""

from __future__ import annotations

import pytest

from perdure import errors
from perdure.chats.ownership import Asker
from perdure.chats.pruning import choose, prune
from perdure.chats.service import Chats
from perdure.chats.targets import find_chat
from perdure.model.chat import Chat, CloseReason, Kinship
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn

ALICE, BOB = a_source("alice"), a_source("bob")


# --- which one is meant


def test_an_id_a_key_a_title_and_a_beginning(chats: Chats) -> None:
    first = chats.open(ALICE)
    chats.set_title(ALICE, first.id, "My Project")
    second = chats.reset(ALICE)
    other = chats.open(BOB)
    store = chats.store
    assert find_chat(store, first.id).id == first.id
    assert find_chat(store, first.key).id == second.id
    assert find_chat(store, " My Project ").id == first.id
    assert find_chat(store, other.id[:-1]).id == other.id


def test_a_key_without_an_open_chat_means_the_one_that_was_closed_last(store: Store) -> None:
    for number in (1, 2):
        moment = at(number)
        store.chats.begin_chat(a_chat(f"c{number}", key="k", closed_at=moment, close_reason=CloseReason.ASKED))
    assert find_chat(store.chats, "k").id == "c2"


def test_a_title_means_the_latest_of_its_line_and_a_number_itself(chats: Chats) -> None:
    first = chats.open(ALICE)
    chats.set_title(ALICE, first.id, "My Project")
    branch = chats.branch(ALICE, first.id)
    assert branch.title == "My Project #2"
    assert find_chat(chats.store, "My Project").id == branch.id
    assert find_chat(chats.store, "My Project #2").id == branch.id
    with pytest.raises(errors.ChatNotFound):
        find_chat(chats.store, "my project")


def test_several_that_may_be_meant_are_named(chats: Chats) -> None:
    ours = [chats.open(source) for source in (ALICE, BOB)]
    for chat in ours:
        chats.set_title(Asker.OPERATOR, chat.id, "Plans")
    for text in ("Plans", "2026"):
        with pytest.raises(errors.AmbiguousChat) as caught:
            find_chat(chats.store, text)
        assert all(chat.id in caught.value.message for chat in ours)
        assert sorted(caught.value.data["chats"]) == sorted(chat.id for chat in ours)  # type: ignore[call-overload]


@pytest.mark.parametrize("text", ["", " ", "%", "_", "x" * 5000, "a\udcffb", "a\0b", "'; DROP TABLE chats; --"])
def test_what_nothing_is_called_is_not_found(chats: Chats, text: str) -> None:
    chats.open(ALICE)
    with pytest.raises(errors.ChatNotFound):
        find_chat(chats.store, text)


# --- beginning anew, and a copy elsewhere


def test_a_chat_is_begun_anew_by_its_id_whatever_its_key(chats: Chats, store: Store) -> None:
    store.chats.begin_chat(a_chat("c1", key="of earlier rules", shared=True))
    begun = chats.renew(Asker.OPERATOR, "c1")
    assert (begun.key, begun.follows, begun.kinship, begun.shared) == (
        "of earlier rules",
        "c1",
        Kinship.SUCCESSOR,
        True,
    )
    assert begun.notice is None
    assert store.chats.get_chat("c1").close_reason is CloseReason.ASKED
    with pytest.raises(errors.Conflict):
        chats.renew(Asker.OPERATOR, "c1")
    with pytest.raises(errors.Refused):
        chats.renew(BOB, begun.id)


def test_the_operator_copies_a_chat_to_where_a_stranger_could_not(chats: Chats) -> None:
    theirs, other = chats.open(ALICE), chats.open(BOB)
    chats.append(theirs.id, a_turn("hello"))
    with pytest.raises(errors.Refused):
        chats.branch(BOB, theirs.id)
    copy = chats.branch(BOB, theirs.id, asker=Asker.OPERATOR, key=other.key)
    assert (copy.key, copy.source, copy.follows) == (other.key, BOB, theirs.id)
    assert [turn.content for turn in chats.load(copy.id).turns] == ["hello"]
    assert chats.get(BOB, copy.id).is_open


# --- pruning


def _old(chats: Chats, clock: Clock) -> Chat:
    """A closed chat of Alice's that was last used 100 days ago."""
    old = chats.open(ALICE)
    chats.append(old.id, a_turn("long ago"))
    chats.reset(ALICE)
    clock.later(days=100)
    return old


def test_what_was_chosen_goes_with_its_words(chats: Chats, clock: Clock) -> None:
    old = _old(chats, clock)
    before = at(86400)
    done = prune(chats.store, choose(chats.store.list_chats(), before).doomed, before, clock())
    assert [chat.id for chat in done.gone] == [old.id]
    assert done.kept == ()
    with pytest.raises(errors.ChatNotFound):
        chats.load(old.id)
    assert chats.store.search_turns("ago") == ()
    assert chats.open(ALICE).follows == old.id


def test_one_that_was_used_since_it_was_chosen_is_kept_even_when_it_is_closed_again(chats: Chats, clock: Clock) -> None:
    old = _old(chats, clock)
    before = at(86400)
    chosen = choose(chats.store.list_chats(), before).doomed
    chats.switch(ALICE, old.id)
    assert prune(chats.store, chosen, before, clock()).gone == ()
    chats.append(old.id, a_turn("just now"))
    chats.reset(ALICE)
    done = prune(chats.store, chosen, before, clock())
    assert ([chat.id for chat in done.kept], done.gone) == ([old.id], ())
    assert len(chats.load(old.id).turns) == 2


def test_when_the_end_of_a_conversation_is_resumed_its_beginning_is_kept(chats: Chats, clock: Clock) -> None:
    first = chats.open(ALICE)
    chats.append(first.id, a_turn("the beginning"))
    second = chats.compress(first.id, [a_turn("in short")])
    chats.reset(ALICE)
    clock.later(days=100)
    before = at(86400)
    chosen = choose(chats.store.list_chats(), before).doomed
    assert [chat.id for chat in chosen] == [second.id, first.id]
    chats.resume(ALICE, first.id)
    assert prune(chats.store, chosen, before, clock()).gone == ()
    assert len(chats.load(first.id).turns) == 1


def test_one_that_went_meanwhile_is_nobodys_failure(chats: Chats, clock: Clock) -> None:
    old = _old(chats, clock)
    chosen = choose(chats.store.list_chats(), at(86400)).doomed
    chats.store.forget_chat(old.id)
    done = prune(chats.store, chosen, at(86400), clock())
    assert (done.gone, done.kept) == ((), ())
