"""Moments and spans of time as people type them."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.spans import moment_argument, span_argument
from tests.builders import NOON


@pytest.mark.parametrize(
    ("text", "hours"), [("30", 720), ("30d", 720), ("12w", 2016), ("36h", 36), (" 1d ", 24), ("36525", 876600)]
)
def test_spans(text: str, hours: int) -> None:
    assert span_argument(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "0", "0d", "-1", "d", "1m", "1.5d", "3 d", "²", "36526", "9" * 30, "1d2h"])
def test_what_is_no_span_is_said_so(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        span_argument(text)


def test_moments() -> None:
    assert moment_argument("3d")(NOON) == NOON - timedelta(days=3)
    assert moment_argument("2026-11-15T18:30Z")(NOON) == datetime(2026, 11, 15, 18, 30, tzinfo=UTC)
    assert moment_argument("2026-11-15T18:30+02:00")(NOON) == datetime(2026, 11, 15, 16, 30, tzinfo=UTC)
    assert moment_argument("2026-11-15")(NOON) == datetime(2026, 11, 15).astimezone()


@given(st.text())
def test_anything_else_is_said_to_be_wrong(text: str) -> None:
    try:
        assert moment_argument(text)(NOON).tzinfo is not None
    except argparse.ArgumentTypeError:
        return
