"""Times, digests and ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.store.rows import canonical, content_of, moment_of, packed, snapshot_id, stamp, unpacked
from tests.builders import a_pane, a_server, a_topology

zones = st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(timezone)
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)  # noqa: DTZ001 - the zone is added


@given(moments, moments)
def test_the_order_of_stamps_is_the_order_in_time(one: datetime, other: datetime) -> None:
    assert len(stamp(one)) == len(stamp(other)) == 27
    assert (stamp(one) < stamp(other)) == (one < other)
    assert moment_of(stamp(one)) == one


@given(
    st.datetimes(timezones=st.just(UTC))
    | st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(microsecond=0))
)
def test_a_stamp_is_the_same_whichever_way_it_is_made(moment: datetime) -> None:
    assert stamp(moment) == moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    assert stamp(moment) == stamp(moment.replace(tzinfo=timezone(timedelta(0), "Z")))


def test_a_time_without_a_zone_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="zone"):
        stamp(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)))
def test_the_order_of_a_mapping_does_not_show(options: dict[str, str]) -> None:
    turned = dict(reversed(options.items()))
    one, other = (canonical(a_topology([a_pane(options=each)])) for each in (options, turned))
    assert content_of(one) == content_of(other)


def test_an_id_says_all_it_is_made_of() -> None:
    one, other = a_server(), a_server("other")
    made = {
        snapshot_id(one, "capture", "c", None),
        snapshot_id(other, "capture", "c", None),
        snapshot_id(one, "import", "c", None),
        snapshot_id(one, "capture", "d", None),
        snapshot_id(one, "capture", "c", "p"),
        snapshot_id(one, "capture", "c", "p", late="2026"),
    }
    assert len(made) == 6
    assert {len(id) for id in made} == {16}
    assert snapshot_id(one, "capture", "c", "p") == snapshot_id(one, "capture", "c", "p")


@given(st.binary(max_size=100))
def test_what_is_packed_comes_back(raw: bytes) -> None:
    assert unpacked(packed(raw)) == raw


def test_damage_is_noticed() -> None:
    with pytest.raises(ValueError, match="incorrect"):
        unpacked(b"no")
