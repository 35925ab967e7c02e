"""Which file an aider writes its conversation to, how sure that is, and how it comes back."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.agents.aider import Aider
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Command
from perdure.model.secrets import redact_argv
from tests.contract.agents import samples
from tests.contract.agents.cases.aider import HISTORY, VERSION
from tests.unit.agents.hosts import CWD, HOME, DirectoryHost, Seen, process

AIDER = Aider()
OWN = f"{CWD}/mine.md"


def first(host: DirectoryHost, *argv: str, cwd: str | None = CWD, **environ: str) -> Identity:
    return AIDER.identify(Seen(process("aider", *argv, cwd=cwd, environ=environ)), host)[0]


@pytest.mark.parametrize(
    "argv",
    [("--chat-history-file", OWN), ("--chat-history-file=mine.md",), ("--chat-hist", "sub/../mine.md", "main.py")],
)
def test_a_file_of_its_own_by_flag_is_certain(host: DirectoryHost, argv: tuple[str, ...]) -> None:
    host.write(OWN, "")
    found = first(host, *argv)
    assert (found.conversation, found.evidence, found.certain) == (OWN, Evidence.ARGV, True)


def test_so_is_one_by_variable_and_the_flag_counts_more(host: DirectoryHost) -> None:
    host.write(OWN, "")
    host.write(f"{CWD}/other.md", "")
    assert first(host, AIDER_CHAT_HISTORY_FILE="mine.md").conversation == OWN
    assert first(host, AIDER_CHAT_HISTORY_FILE="mine.md").certain
    assert first(host, "--chat-history-file", "other.md", AIDER_CHAT_HISTORY_FILE=OWN).conversation == f"{CWD}/other.md"


def test_the_directory_s_own_file_is_everybody_s(host: DirectoryHost) -> None:
    host.write(HISTORY, "")
    found = first(host)
    assert (found.conversation, found.evidence, found.certain) == (HISTORY, Evidence.ARGV, False)
    assert "every aider in this directory appends" in found.because[0]


def test_that_file_by_flag_is_everybody_s_as_well(host: DirectoryHost) -> None:
    host.write(HISTORY, "")
    assert not first(host, "--chat-history-file", HISTORY).certain
    assert not first(host, AIDER_CHAT_HISTORY_FILE=".aider.chat.history.md").certain


def test_in_a_repository_it_lies_at_its_root(host: DirectoryHost) -> None:
    host.write("/home/dev/work/.git/HEAD", "ref: refs/heads/trunk\n")
    assert first(host).conversation == "/home/dev/work/.aider.chat.history.md"
    # It looks for the repository before it reads that it should not.
    assert first(host, "--no-git").conversation == "/home/dev/work/.aider.chat.history.md"
    host.write(f"{CWD}/.git", "gitdir: /home/dev/work/.git/worktrees/proj1\n")
    assert first(host).conversation == HISTORY


def test_files_in_another_repository_move_it_there(host: DirectoryHost) -> None:
    host.write("/srv/app/.git/HEAD", "ref: refs/heads/main\n")
    there = "/srv/app/.aider.chat.history.md"
    assert first(host, "/srv/app/src/main.py").conversation == there
    assert first(host, "/srv/app").conversation == there
    assert first(host, "/srv/app/main.py", "--no-git").conversation == HISTORY
    host.write(f"{CWD}/.git/HEAD", "ref: refs/heads/main\n")
    assert first(host, "/srv/app/main.py", "main.py").conversation == HISTORY


def test_settings_choose_a_file_for_all_who_read_them(host: DirectoryHost) -> None:
    host.write(f"{HOME}/.aider.conf.yml", "model: gpt\nchat-history-file: home.md  # for all\n")
    assert first(host).conversation == f"{CWD}/home.md"
    host.write(f"{CWD}/.aider.conf.yml", "chat-history-file: 'here it is.md'\n")
    assert first(host).conversation == f"{CWD}/here it is.md"
    host.write("/srv/own.yml", 'chat-history-file: "/srv/own.md"\n')
    assert first(host, "--config", "/srv/own.yml").conversation == "/srv/own.md"
    host.write(f"{CWD}/.env", "OTHER=1\nexport AIDER_CHAT_HISTORY_FILE=env.md\n")
    found = first(host, AIDER_CHAT_HISTORY_FILE="mine.md")
    assert (found.conversation, found.certain) == (f"{CWD}/env.md", False)
    host.write(f"{CWD}/more.env", "AIDER_CHAT_HISTORY_FILE=more.md\n")
    assert first(host, "--env-file", "more.env").conversation == f"{CWD}/more.md"


def test_a_file_that_is_not_there_is_doubtful(host: DirectoryHost) -> None:
    found = first(host, "--chat-history-file", OWN)
    assert (found.conversation, found.certain, found.prompted) == (OWN, False, None)


def test_without_a_directory_only_an_absolute_path_says_anything(host: DirectoryHost) -> None:
    host.write(OWN, "")
    assert first(host, "--chat-history-file", OWN, cwd=None).conversation == OWN
    assert first(host, "--chat-history-file", "mine.md", cwd=None).conversation is None
    assert first(host, cwd=None).conversation is None


def test_nothing_said_is_known(host: DirectoryHost) -> None:
    host.write(OWN, "\n# aider chat started at 2026-11-15 08:30:00\n\n> Aider v0.86.2  \n")
    assert first(host, "--chat-history-file", OWN).prompted is False
    host.write(OWN, "\n# aider chat started at 2026-11-15 08:30:00\n\n#### hello  \n")
    assert first(host, "--chat-history-file", OWN).prompted is True


def test_what_the_end_of_the_file_says_is_told(host: DirectoryHost) -> None:
    host.write(HISTORY, samples.read(VERSION, "chat.history.md"))
    host.write(f"{CWD}/.git/HEAD", "ref: refs/heads/a/branch\n")
    details = AIDER.describe(Identity(agent="aider", conversation=HISTORY), process("aider"), host)
    assert details == AgentDetails(
        task="after restore prompt",
        model="openai/stub",
        provider="openai",
        branch="a/branch",
        transcript=HISTORY,
        version="0.86.2",
        last_activity_at=host.modified_at(HISTORY),
    )
    assert AIDER.describe(Identity(agent="aider"), process("aider"), host) == AgentDetails()


def test_a_worktree_s_branch_is_its_own(host: DirectoryHost) -> None:
    host.write(HISTORY, "")
    host.write(f"{CWD}/.git", "gitdir: /srv/app/.git/worktrees/proj1\n")
    host.write("/srv/app/.git/worktrees/proj1/HEAD", "ref: refs/heads/side\n")
    identity = Identity(agent="aider", conversation=HISTORY)
    assert AIDER.describe(identity, process("aider"), host).branch == "side"


def test_an_answer_s_own_headings_and_quotes_are_the_answer_s(host: DirectoryHost) -> None:
    answer = "# Heading\n\n#### smaller\n\n> a quote\n\nthe end"
    host.write(OWN, f"\n# aider chat started at 2026-11-15 08:30:00\n\n#### one  \n####   \n#### two  \n\n{answer}\n\n")
    turns = [(turn["role"], turn["text"]) for turn in AIDER.turns(OWN, host)]
    assert turns[1:] == [("user", "one\n\ntwo"), ("assistant", answer)]
    assert {turn["time"] for turn in AIDER.turns(OWN, host)} == {None}


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("", ""),
        ("--model openai/stub main.py notes.md", "--model openai/stub main.py notes.md"),
        ("--restore-chat-history --no-restore-chat-history --rest", ""),
        ("--chat-history-file other.md --chat-hist=x --read a.md", "--read a.md"),
        ("--load commands.txt --yes-always", "--yes-always"),
        ("--openai-api-key made-up --api-key openai=made-up", "--openai-api-key made-up --api-key openai=made-up"),
        ("--no-auto-commits -4 -v -- -odd.py other.py", "--no-auto-commits -4 -v -- -odd.py other.py"),
        ("--not-known-yet value main.py", "--not-known-yet value main.py"),
    ],
)
def test_everything_comes_back_but_what_acts_once(words: str, kept: str) -> None:
    command = AIDER.resume(
        Identity(agent="aider", conversation=OWN),
        Command(argv=("aider", *words.split()), cwd=CWD, environ={"LANG": "C"}),
    )
    assert command is not None
    assert list(command.argv) == ["aider", "--chat-history-file", OWN, "--restore-chat-history", *kept.split()]
    assert (command.cwd, command.environ) == (CWD, {"LANG": "C"})


def test_where_nothing_was_said_nothing_is_restored() -> None:
    identity = Identity(agent="aider", conversation=OWN, prompted=False)
    command = AIDER.resume(identity, Command(argv=("python3", "/opt/bin/aider", "--restore-chat-history"), cwd=CWD))
    assert command is not None
    assert command.argv == ("python3", "/opt/bin/aider", "--chat-history-file", OWN)
    assert AIDER.same_directory


def test_keys_on_its_command_line_are_kept_for_restoring_and_never_shown() -> None:
    secrets = (
        "--openai-api-key",
        "k1",
        "--anthropic-api-key=k2",
        "--api-key",
        "openai=k3",
        "--set-env",
        "X_API_KEY=k4",
    )
    command = AIDER.resume(Identity(agent="aider", conversation=OWN), Command(argv=("aider", *secrets), cwd=CWD))
    assert command is not None
    assert command.argv[-len(secrets) :] == secrets
    assert not {"k1", "k2", "k3", "k4"} & {word.rpartition("=")[2] for word in redact_argv(command.argv)}


WORDS = st.lists(
    st.sampled_from(["--chat-h", "--restore-chat-history", "-m", "--load", "--", "-", "a.py", "--model", "--model=x"])
    | st.text(max_size=6)
)


@example(["--read", "--", "--", "--"])
@given(WORDS)
def test_no_file_in_the_chat_is_lost_and_resuming_twice_is_resuming_once(words: list[str]) -> None:
    identity = Identity(agent="aider", conversation=OWN)
    command = AIDER.resume(identity, Command(argv=("aider", *words), cwd=CWD))
    assert command is not None
    assert AIDER.resume(identity, command) == command

    def files(argv: tuple[str, ...]) -> list[str]:
        return [each.values[0] for each in AIDER.arguments(process(*argv)) if each.name is None]

    assert files(command.argv) == files(("aider", *words))


def test_one_file_by_two_names_is_one_conversation(host: DirectoryHost) -> None:
    host.write(OWN, "# aider chat started at 2026-11-15 08:00:00\n\n#### hello  \n")
    os.symlink("mine.md", host.real(f"{CWD}/other.md"))
    named = first(host, "--chat-history-file", "other.md")
    assert named.conversation == first(host, "--chat-history-file", "mine.md").conversation == OWN
