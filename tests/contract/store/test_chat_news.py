"""What has happened to chats, for whoever keeps a copy of them: all of it, or it is said that it is not all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.chats.service import Chats
from perdure.model.chat import ChatNews
from perdure.model.config import Config
from perdure.store.store import Store
from tests.builders import NOON
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn


@pytest.fixture
def chats(threaded: Store) -> Chats:
    """The chats of a new store, in which what is said is told later."""
    return Chats(threaded.chats, Config(), Clock())


def test_what_happened_is_told_once(chats: Chats, threaded: Store) -> None:
    first = threaded.chats.chat_news(None)
    assert first == ChatNews(last=0, is_all=False)
    one, other = chats.open(a_source()).id, chats.open(a_source("bob")).id
    begun = threaded.chats.chat_news(first.last)
    assert begun == ChatNews(last=begun.last, mark=begun.mark, changed=frozenset({one, other}))
    chats.append(one, a_turn("a"))
    said = threaded.chats.chat_news(begun.last)
    assert said == ChatNews(last=said.last, mark=said.mark, changed=frozenset({one}))
    threaded.make_up_for_untold()
    told = threaded.chats.chat_news(said.last)
    assert threaded.chats.chat_news(told.last) == ChatNews(last=told.last, mark=told.mark)
    chats.undo(one)
    assert threaded.chats.chat_news(told.last).changed == {one}


def test_what_was_forgotten_is_told_from_what_came_back(threaded: Store) -> None:
    gone, back = (a_chat(id, closed_at=NOON) for id in ("gone", "back"))
    for each in (gone, back):
        threaded.chats.import_chat(each, [a_turn("a", position=1)])
    before = threaded.chats.chat_news(0).last
    for each in (gone, back):
        threaded.chats.forget_chat(each.id)
    threaded.chats.import_chat(back, [a_turn("b", position=1)])
    for news in (threaded.chats.chat_news(before), threaded.chats.chat_news(None)):
        assert news.forgotten == {"gone"}
        assert news.renewed == news.changed == {"back"}


def test_it_is_said_that_something_may_be_missing(chats: Chats, threaded: Store) -> None:
    one = chats.open(a_source()).id
    heard = threaded.chats.chat_news(0)
    assert heard.is_all
    # Of a number that was never given here: another database was heard.
    assert not threaded.chats.chat_news(heard.last + 1).is_all
    chats.append(one, a_turn("a"))
    chats.undo(one)
    threaded.forget_events(NOON + timedelta(days=1))
    news = threaded.chats.chat_news(heard.last)
    assert not news.is_all
    assert threaded.chats.chat_news(news.last) == ChatNews(last=news.last, mark=news.mark)


def test_where_a_chat_goes_on_moves_with_whatever_is_said_or_taken_back(chats: Chats, threaded: Store) -> None:
    id = chats.open(a_source()).id
    seen = [threaded.chats.next_positions([id, "nobody's"])]
    for change in (
        lambda: chats.append(id, a_turn("a"), a_turn("b", "assistant")),
        lambda: chats.rewrite(id, 2, a_turn("c", "assistant")),
        lambda: chats.undo(id),
    ):
        change()
        seen.append(threaded.chats.next_positions([id, "nobody's"]))
    assert [set(each) for each in seen] == [{id}] * 4
    assert len({each[id] for each in seen}) == 4
    assert threaded.chats.next_positions([id])[id] == chats.load(id).next
    chats.touch(id)
    assert threaded.chats.next_positions([id]) == seen[-1]
    assert threaded.chats.next_positions([]) == {}
