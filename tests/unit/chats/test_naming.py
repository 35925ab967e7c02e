"""Titles that are given to what goes on under a name, whoever else takes them."""

from __future__ import annotations

from typing import cast

import pytest

from perdure import errors
from perdure.chats.naming import with_free_title
from perdure.ports import ChatStore


class Forgetful:
    """A store that knows of no title, and refuses all."""

    def taken_titles(self, owner: str, title: str) -> tuple[str, ...]:
        return ()


STORE = cast("ChatStore", Forgetful())


def test_no_title_is_tried_twice_and_it_ends() -> None:
    tried: list[str | None] = []

    def refuse(title: str | None) -> str:
        tried.append(title)
        raise errors.TitleTaken(f"{title} is taken.")

    with pytest.raises(errors.TitleTaken, match=r"Roof #\d+ is taken"):
        with_free_title(STORE, lambda: ("alice", "Roof"), refuse)
    assert tried[:3] == ["Roof", "Roof #2", "Roof #3"]
    assert len(set(tried)) == len(tried)


def test_what_others_change_without_end_is_given_up() -> None:
    looked: list[str | None] = []
    with pytest.raises(errors.Conflict):
        with_free_title(STORE, lambda: ("alice", "Roof"), looked.append)
    # It was free all the time.
    assert set(looked) == {"Roof"}
