"""Settings changed in config.toml: what was asked for, and nothing else."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import ConfigError, Refused
from perdure.host.config import parse_config
from perdure.host.config_edit import with_settings

PATH, HOME = "/home/dev/.config/perdure/config.toml", "/home/dev"
TEXT = """\
# mine
zone = "Europe/Berlin"   # where I am

[retention]   # long
daily_days = 365  # a year

# about restores
[restore]
programs = [
    "vim",  # the one
]

[chats.reset]
mode = "idle"
"""

#: Ways the same thing is written down.
WAYS = [
    "",
    TEXT,
    "retention.daily_days = 3 # dotted\nrestore = { max_parallel = 2 }\n",
    "[restore]\n[live]\n[retention]\nhourly_days=1",
    "[restore]\nmax_parallel = 2\r\n# dos\r\n",
    "[retention]\ndaily_days = 1\n[agents.mine]\nbinaries = ['mine']\n[restore]\n",
]

SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "retention": st.dictionaries(
            st.sampled_from(["everything_hours", "hourly_days", "daily_days"]), st.none() | st.integers(0, 9999)
        ),
        "live": st.dictionaries(st.just("restore"), st.none() | st.booleans()),
        "restore": st.fixed_dictionaries(
            {},
            optional={
                "max_parallel": st.none() | st.integers(1, 64),
                "memory_pressure": st.none() | st.floats(0, 100),
                "programs": st.none() | st.lists(st.text("abc-_.é \"'#", min_size=1), max_size=3).map(tuple),
            },
        ),
    },
)


@given(st.sampled_from(WAYS), SETTINGS)
def test_what_is_asked_for_is_set_and_nothing_else_changes(text: str, settings: dict[str, dict[str, object]]) -> None:
    after = with_settings(text, settings, PATH, home=HOME)
    before_said, said = tomllib.loads(text), tomllib.loads(after)
    for table, values in settings.items():
        for name, value in values.items():
            found = said.get(table, {}).get(name)
            assert (tuple(found) if isinstance(found, list) else found) == value
            said.get(table, {}).pop(name, None)
            before_said.get(table, {}).pop(name, None)
    assert {name: each for name, each in said.items() if each} == {
        name: each for name, each in before_said.items() if each
    }
    parse_config(after.encode(), PATH)
    # Every comment is where it was, apart from those of what was taken away.
    if not any(None in values.values() for values in settings.values()) and "programs" not in settings.get(
        "restore", {}
    ):
        assert [line.partition("#")[2] for line in text.splitlines() if "#" in line] == [
            line.partition("#")[2] for line in after.splitlines() if "#" in line
        ]


def test_a_line_is_changed_in_its_place() -> None:
    after = with_settings(TEXT, {"retention": {"daily_days": 30}, "live": {"restore": True}}, PATH, home=HOME)
    assert after == TEXT.replace("365", "30") + "\n[live]\nrestore = true\n"


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("nonsense", {}),
        ("[restore]\nbogus = 1\n", {"restore": {"max_parallel": 1}}),
        ("", {"restore": {"max_parallel": 65}}),
        ("", {"retention": {"daily_days": -1}}),
        ("", {"bogus": {"x": 1}}),
        ("retention = 3\n", {"retention": {"daily_days": 1}}),
    ],
)
def test_what_would_not_hold_is_refused(text: str, settings: dict[str, dict[str, object]]) -> None:
    with pytest.raises((ConfigError, Refused)) as refused:
        with_settings(text, settings, PATH, home=HOME)
    assert PATH in refused.value.message
