"""Pages of a list that changes while somebody turns them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api.replies import Page, Rank, newest_first, page_of
from perdure.errors import UsageError
from tests.builders import at

numbers = st.lists(st.integers(0, 30), unique=True)


def rank_of(number: int) -> Rank:
    return newest_first(at(0) + timedelta(seconds=number // 3), str(number % 3))


def turn(items: list[int], limit: int, cursor: str | None) -> Page[int]:
    return page_of(items, rank_of, limit=limit, cursor=cursor)


@given(numbers, numbers, numbers, st.integers(1, 5))
def test_whoever_stays_is_on_one_page(before: list[int], come: list[int], go: list[int], limit: int) -> None:
    first = turn(before, limit, None)
    after = [number for number in {*before, *come} if number not in go]
    found, cursor = first.items, first.next
    while cursor is not None:
        page = turn(after, limit, cursor)
        assert len(page.items) <= limit
        found, cursor = [*found, *page.items], page.next
    stayed = [number for number in before if number not in go]
    if first.next is not None:
        assert set(stayed) <= set(found)
    assert len(found) == len(set(found))
    assert found == sorted(found, key=rank_of)


def test_what_goes_moves_nobody_over_the_edge_of_a_page() -> None:
    first = turn([1, 2, 3, 4, 5], 3, None)
    assert first.items == [3, 4, 5]
    assert turn([1, 2, 3, 5], 3, first.next).items == [1, 2]


@pytest.mark.parametrize("cursor", ["NA", "nonsense", "W10", "e30", ""])
def test_a_page_nobody_was_led_to(cursor: str) -> None:
    with pytest.raises(UsageError, match="no such page"):
        turn([1, 2, 3], 2, cursor)
