from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import ConfigError
from perdure.host.config_jobs import mistakes_in_jobs, read_jobs
from perdure.model.config import Config, JobsConfig
from tests.unit.host.configs import read


def test_without_a_word_the_defaults_hold() -> None:
    assert read("[jobs]").jobs == Config().jobs == JobsConfig()
    assert list(mistakes_in_jobs(JobsConfig())) == []


def test_everything_that_may_be_set() -> None:
    text = """
        [jobs]
        wait_seconds = 60
        poll_bytes = 1000
        log_bytes = 65536
        keep_seconds = 0
        keep_ended = 0
        max_running = 1
        max_per_owner = 2
        grace_seconds = 0.5
        environment = ["PATH", "LC_*"]
        secrets = ["OPENAI_API_KEY"]
        """
    assert read(text).jobs == JobsConfig(
        wait_seconds=60.0,
        poll_bytes=1000,
        log_bytes=65536,
        keep_seconds=0.0,
        keep_ended=0,
        max_running=1,
        max_per_owner=2,
        grace_seconds=0.5,
        environment=("PATH", "LC_*"),
        secrets=("OPENAI_API_KEY",),
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("wait_seconds = 0", "jobs.wait_seconds is 0.0, and must be from 1 to 86400"),
        ("log_bytes = 1000", "jobs.log_bytes is 1000, and must be from 65536"),
        ("max_running = 0", "jobs.max_running is 0, and must be from 1"),
        ("keep_ended = -1", "jobs.keep_ended is -1, and must be from 0"),
        ('wait_seconds = "long"', "[jobs]: wait_seconds must be a number, not a text"),
        ("colour = 1", "[jobs]: there is no field 'colour'"),
        ('environment = ["A B"]', "jobs.environment has 'A B', which is no variable's name"),
        ('secrets = ["sk-abcdefghijklmnopqrstuvwxyz"]', "jobs.secrets has something that is no variable's name"),
        ("grace_seconds = nan", "jobs.grace_seconds is nan"),
    ],
)
def test_a_mistake_is_said_in_a_sentence(line: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"[jobs]\n{line}")
    assert said in caught.value.message
    assert "sk-abc" not in caught.value.message


def test_every_mistake_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read('[jobs]\nmax_running = 0\ncolour = 1\nkeep_ended = "x"\nwait_seconds = -1')
    assert len(caught.value.message.splitlines()) == 4


def test_it_is_a_table() -> None:
    with pytest.raises(ConfigError, match="jobs must be a table"):
        read("jobs = 3")


VALUES = st.one_of(
    st.integers(), st.floats(), st.text(max_size=5), st.booleans(), st.lists(st.text(max_size=5), max_size=2)
)


@given(
    st.dictionaries(st.one_of(st.sampled_from(JobsConfig.__struct_fields__), st.text(max_size=5)), VALUES, max_size=4)
)
def test_whatever_is_set_is_right_or_said_to_be_wrong(table: dict[str, Any]) -> None:
    jobs, wrong = read_jobs(table)
    assert bool(wrong) or not list(mistakes_in_jobs(jobs))
    assert all(wrong)
