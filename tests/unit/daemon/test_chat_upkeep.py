"""When the daemon sees to chats that were kept long enough."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from perdure.daemon.chat_upkeep import EVERY, FIRST, SOON, ChatUpkeep
from perdure.daemon.keeping import Keeping
from perdure.errors import StoreUnusable
from perdure.model.config import ChatsConfig, Config


def upkeep(tidy: Callable[[], bool], *, keep_days: int = 30, legacy_dir: str = "") -> ChatUpkeep:
    config = Config(chats=ChatsConfig(keep_days=keep_days, legacy_dir=legacy_dir))
    world: Any = SimpleNamespace(config=config, tidy_chats=tidy)
    return ChatUpkeep(cast(Keeping, SimpleNamespace(world=world)))


def test_nothing_is_done_where_chats_are_kept_for_good() -> None:
    asked: list[str] = []

    def tidy() -> bool:
        asked.append("tidy")
        return False

    chats = upkeep(tidy, keep_days=0)
    for at in (0.0, 10.0, 10_000.0):
        chats.look(at)
    assert (asked, chats.next()) == ([], float("inf"))


def test_it_is_looked_after_the_beginning_then_now_and_then_and_soon_when_there_is_more() -> None:
    more = [True, False, False]
    at_work: list[float] = []
    now = 100.0

    def tidy() -> bool:
        at_work.append(now)
        return more.pop(0)

    chats = upkeep(tidy)
    chats.look(now)
    assert at_work == []
    for _ in range(3):
        before = chats.next()
        now = before - 0.1
        chats.look(now)
        now = before
        chats.look(now)
    first = 100.0 + FIRST
    assert at_work == [first, first + SOON, first + SOON + EVERY]


def test_a_mirror_is_seen_to_where_chats_are_kept_for_good_too() -> None:
    asked: list[str] = []

    def tidy() -> bool:
        asked.append("tidy")
        return False

    chats = upkeep(tidy, keep_days=0, legacy_dir="/home/dev/sessions")
    chats.look(0.0)
    chats.look(FIRST)
    assert (asked, chats.next()) == (["tidy"], FIRST + EVERY)


def test_a_store_that_fails_ends_nothing_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    def tidy() -> bool:
        raise StoreUnusable("The disk is full.")

    chats = upkeep(tidy)
    chats.look(0.0)
    chats.look(FIRST)
    assert "The disk is full." in caplog.text
    assert chats.next() == FIRST + EVERY
