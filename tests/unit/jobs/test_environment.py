from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.jobs.environment import environment_for, shell_words
from perdure.model.config import JobsConfig
from perdure.model.secrets import is_secret_name, is_secret_value

MINE = {
    "PATH": "/usr/bin",
    "LC_ALL": "C",
    "TMUX": "/tmp/tmux-1000/default,1,0",
    "TMUX_PANE": "%3",
    "COLUMNS": "80",
    "OPENAI_API_KEY": "whatever",
    "INNOCENT": "sk-abcdefghijklmnopqrstuvwxyz",
    "DATABASE": "postgresql://dev:hunter2@localhost/db",
}


def env(given: dict[str, str] | None = None, *, pty: bool = False, **config: tuple[str, ...]) -> dict[str, str]:
    return environment_for(MINE, given or {}, JobsConfig(**config), has_terminal=pty)  # type: ignore[arg-type]


def test_secrets_and_what_is_about_our_own_terminal_are_not_passed_on() -> None:
    assert env() == {"PATH": "/usr/bin", "LC_ALL": "C", "PYTHONUNBUFFERED": "1"}


def test_what_the_configuration_names_is_passed_on() -> None:
    assert env(secrets=("OPENAI_API_KEY", "DATABASE")).keys() - env().keys() == {"OPENAI_API_KEY", "DATABASE"}


def test_a_list_of_names_narrows_it_and_secrets_are_beside_it() -> None:
    named = env(environment=("LC_*",), secrets=("OPENAI_API_KEY",))
    assert named == {"LC_ALL": "C", "OPENAI_API_KEY": "whatever", "PYTHONUNBUFFERED": "1"}


def test_what_is_given_for_this_job_is_always_in_it() -> None:
    given = {"MY_TOKEN": "t0", "PATH": "/bin", "PYTHONUNBUFFERED": "", "COLUMNS": "99"}
    assert env(given).items() >= given.items()


@pytest.mark.parametrize(
    ("mine", "term"), [({}, "xterm-256color"), ({"TERM": "dumb"}, "xterm-256color"), ({"TERM": "screen"}, "screen")]
)
def test_a_terminal_has_a_name(mine: dict[str, str], term: str) -> None:
    assert environment_for(mine, {}, JobsConfig(), has_terminal=True)["TERM"] == term
    assert environment_for(mine, {}, JobsConfig(), has_terminal=False).get("TERM") == mine.get("TERM")


@given(st.dictionaries(st.text(min_size=1, max_size=12), st.text(max_size=30), max_size=6))
def test_nothing_that_looks_like_a_secret_gets_through(mine: dict[str, str]) -> None:
    for name, value in environment_for(mine, {}, JobsConfig(), has_terminal=False).items():
        assert not is_secret_name(name)
        assert not is_secret_value(value)


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash", "/usr/bin/dash", "/usr/bin/zsh", "/usr/bin/fish"])
def test_a_text_is_carried_out_where_it_belongs_with_nothing_else_said(shell: str, tmp_path: object) -> None:
    words = shell_words(shell, str(tmp_path), "pwd; echo 'a  b' >&2; exit 7", has_terminal=False)
    try:
        done = subprocess.run(
            words, capture_output=True, stdin=subprocess.DEVNULL, start_new_session=True, timeout=60, check=False
        )
    except FileNotFoundError:
        pytest.skip(f"there is no {shell}")
    if done.returncode == 127:
        pytest.skip(f"there is no {shell}")
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (7, f"{tmp_path}\n", "a  b\n")


def test_what_the_files_of_a_shell_say_and_where_they_go_is_none_of_the_jobs(tmp_path: object) -> None:
    import os

    with open(os.path.join(os.environ["HOME"], ".profile"), "w") as file:
        file.write("echo hello; echo noise >&2; cd /; export FROM_PROFILE=yes\n")
    words = shell_words("/bin/sh", str(tmp_path), 'pwd; echo "$FROM_PROFILE"', has_terminal=False)
    done = subprocess.run(
        words, capture_output=True, stdin=subprocess.DEVNULL, start_new_session=True, timeout=60, check=False
    )
    assert (done.stdout.decode(), done.stderr.decode()) == (f"{tmp_path}\nyes\n", "")
