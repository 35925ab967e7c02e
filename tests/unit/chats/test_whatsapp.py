from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.chats.whatsapp import NO_ALIASES, Aliases
from perdure.model.whatsapp_id import plain_id
from tests.unit.chats.strangers import IDS


@pytest.mark.parametrize(
    ("whatsapp_id", "expected"),
    [
        ("15551234567", "15551234567"),
        ("+15551234567", "15551234567"),
        ("15551234567@s.whatsapp.net", "15551234567"),
        ("15551234567:12@s.whatsapp.net", "15551234567"),
        ("15551234567@c.us", "15551234567"),
        ("15551234567@S.WhatsApp.Net", "15551234567"),
        ("15551234567:3", "15551234567"),
        ("998877665544332@lid", "998877665544332@lid"),
        ("998877665544332:7@lid", "998877665544332@lid"),
        ("1203630@g.us", "1203630@g.us"),
        ("status@broadcast", "status@broadcast"),
        ("a:b", "a:b"),
        ("a@b@c", "a@b@c"),
        ("", ""),
        ("+", "+"),
    ],
)
def test_a_plain_id(whatsapp_id: str, expected: str) -> None:
    assert plain_id(whatsapp_id) == expected
    assert NO_ALIASES.canonical(whatsapp_id) == expected


@pytest.mark.parametrize(
    "pairs",
    [
        {"998877665544332@lid": "15551234567"},
        {"15551234567@s.whatsapp.net": "998877665544332@lid"},
        {"998877665544332": "15551234567"},
        {"998877665544332": "15551234567", "15551234567": "998877665544332"},
        {"998877665544332@lid": "77", "77": "+15551234567"},
    ],
)
def test_a_lid_and_a_number_are_one_person(pairs: dict[str, str]) -> None:
    aliases = Aliases(pairs)
    forms = ["15551234567", "+15551234567", "15551234567:4@s.whatsapp.net", "998877665544332:1@lid"]
    assert len({aliases.canonical(each) for each in forms}) == 1


def test_the_shortest_number_is_taken() -> None:
    aliases = Aliases({"998877665544332@lid": "15551234567", "ann": "15551234567"})
    assert aliases.canonical("ann") == aliases.canonical("998877665544332@lid") == "15551234567"
    assert Aliases({"112233445566778": "15551234567"}).canonical("112233445566778@lid") == "15551234567"


def test_a_lid_is_not_taken_for_the_number_with_the_same_digits() -> None:
    assert NO_ALIASES.canonical("15551234567@lid") != NO_ALIASES.canonical("15551234567")
    known = Aliases({"998877665544332@lid": "15551234567"})
    assert known.canonical("15551234567@lid") == "15551234567@lid"


PAIRS = st.dictionaries(IDS, IDS, max_size=6)


@given(PAIRS, IDS)
def test_whoever_is_known_by_an_id_is_known_by_it_alone(pairs: dict[str, str], whatsapp_id: str) -> None:
    aliases = Aliases(pairs)
    chosen = aliases.canonical(whatsapp_id)
    assert aliases.canonical(chosen) == chosen
    for one, other in pairs.items():
        assert aliases.canonical(one) == aliases.canonical(other)


@given(PAIRS)
def test_the_order_of_what_is_known_does_not_count(pairs: dict[str, str]) -> None:
    turned = dict(reversed(pairs.items()))
    for each in pairs:
        assert Aliases(pairs).canonical(each) == Aliases(turned).canonical(each)


@given(pairs=PAIRS, whatsapp_id=IDS)
def test_every_id_of_a_person_is_known_by_all_of_them_and_no_other_is(pairs: dict[str, str], whatsapp_id: str) -> None:
    aliases = Aliases(pairs)
    every = aliases.every(whatsapp_id)
    assert every[0] == aliases.canonical(whatsapp_id)
    assert plain_id(whatsapp_id) in every
    assert len(set(every)) == len(every)
    for each in every:
        assert aliases.canonical(each) == every[0]
        assert aliases.every(each) == every


def test_all_ids_of_a_person() -> None:
    assert Aliases({"998877665544332@lid": "15551234567"}).every("+15551234567") == (
        "15551234567",
        "998877665544332@lid",
    )
    assert NO_ALIASES.every("15:3@s.whatsapp.net") == ("15",)
    assert NO_ALIASES.every("15@lid") == ("15@lid",)
    # A LID that a bridge has written down without saying that it is one.
    assert "112233445566778@lid" in Aliases({"112233445566778": "15551234567"}).every("15551234567")
