from __future__ import annotations

import os

import pytest

from perdure.agents.claude.home import (
    config_home,
    find_transcript,
    job_conversation,
    own_directory,
    profile,
    slug,
)
from tests.unit.agents.hosts import BEFORE, HOME, LATER, DirectoryHost, process

A = "11111111-1111-4111-8111-111111111111"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/dev/work/proj1", "-home-dev-work-proj1"),
        ("/home/dev/work/slug/a.b_c d-e~f@g#h+i,j(k)[l]{m}=n'o&p$q!r%s",
         "-home-dev-work-slug-a-b-c-d-e-f-g-h-i-j-k--l--m--n-o-p-q-r-s"),
        ("/x/日本語-é-ñ", "-x--------"),
        ("/x/\N{GRINNING FACE}", "-x---"),
        ("/X/y", "-X-y"),
        ("/a/" + "b" * 197, "-a-" + "b" * 197),
        # As the program itself named them.
        ("/home/dev/smile-\N{GRINNING FACE}-\N{MATHEMATICAL SCRIPT CAPITAL X}y", "-home-dev-smile------y"),
        (f"/home/dev/{'a' * 95}/{'b' * 94}", f"-home-dev-{'a' * 95}-{'b' * 94}"),
        (f"/home/dev/{'a' * 95}/{'b' * 95}", f"-home-dev-{'a' * 95}-{'b' * 94}-jt2bqf"),
        ("/home/dev/work/" + "long-name_" * 20, "-home-dev-work-" + "long-name-" * 18 + "long--cvfqgv"),
        ("/home/dev/work" + ("/" + "\u00dcn\u00ef\N{GRINNING FACE}" * 20) * 3,
         "-home-dev-work" + ("-" + "-n---" * 20) + "-" + "-n---" * 16 + "-n---3tfkbn"),
    ],
)  # fmt: skip
def test_every_unit_that_is_no_letter_or_digit_becomes_a_dash(path: str, name: str) -> None:
    assert slug(path) == name


def test_a_long_path_is_cut_and_told_apart_by_its_hash() -> None:
    """The hash is Java's string hash of the whole path, in base 36 and without its sign."""
    long = slug("/" + "a" * 220)
    assert long == "-" + "a" * 199 + "-" + _base36_of_java_hash("/" + "a" * 220)
    assert slug("/" + "a" * 220 + "b")[:200] == long[:200]
    assert slug("/" + "a" * 220 + "b") != long


def _base36_of_java_hash(path: str) -> str:
    value = sum(ord(c) * 31 ** (len(path) - 1 - at) for at, c in enumerate(path)) % 2**32
    value = abs(value - 2**32 if value >= 2**31 else value)
    digits = []
    while value:
        value, digit = divmod(value, 36)
        digits.append("0123456789abcdefghijklmnopqrstuvwxyz"[digit])
    return "".join(reversed(digits))


def test_a_symlinked_directory_counts_as_what_it_points_to(host: DirectoryHost) -> None:
    os.makedirs(host.real("/home/dev/real"))
    os.symlink("real", host.real("/home/dev/link"))
    assert own_directory("/c", "/home/dev/link", host) == "/c/projects/-home-dev-real"


def test_the_config_home_is_the_processes_own(host: DirectoryHost) -> None:
    assert config_home(process("claude"), host) == f"{HOME}/.claude"
    assert config_home(process("claude", environ={"HOME": "/other"}), host) == "/other/.claude"
    assert config_home(process("claude", environ={"CLAUDE_CONFIG_DIR": "/c/work"}), host) == "/c/work"
    assert config_home(process("claude", environ={"CLAUDE_CONFIG_DIR": "cfg"}, cwd="/w"), host) == "/w/cfg"


def test_a_profile_is_a_config_home_that_is_not_the_usual_one(host: DirectoryHost) -> None:
    assert profile(process("claude"), host) is None
    assert profile(process("claude", environ={"CLAUDE_CONFIG_DIR": "/c/work/"}), host) == "work"
    assert profile(process("claude", environ={"CLAUDE_CONFIG_DIR": f"{HOME}/.claude/"}), host) is None


def test_a_transcript_is_found_wherever_it_went(host: DirectoryHost) -> None:
    home = f"{HOME}/.claude"
    assert find_transcript(home, A, "/w", host) is None
    host.write(f"{home}/projects/-old/{A}.jsonl", b"{}", at=BEFORE)
    newer = host.write(f"{home}/projects/-new/{A}.jsonl", b"{}", at=LATER)
    assert find_transcript(home, A, "/w", host) == newer
    assert find_transcript(home, A, None, host) == newer
    own = host.write(f"{home}/projects/-w/{A}.jsonl", b"{}", at=BEFORE)
    assert find_transcript(home, A, "/w", host) == own


@pytest.mark.parametrize(
    ("job", "state", "conversation"),
    [
        ("12ab34cd", f'{{"sessionId":"{A}"}}', A),
        ("12ab34cd", f'{{"sessionId":"{A.replace("1", "2")}","resumeSessionId":"{A}"}}', A),
        ("12ab34cd", '{"sessionId":"../x"}', None),
        ("12ab34cd", "{", None),
        ("../jobs/12ab34cd", f'{{"sessionId":"{A}"}}', None),
    ],
)
def test_a_job_tells_the_conversation_it_is_in_now(
    host: DirectoryHost, job: str, state: str, conversation: str | None
) -> None:
    host.write(f"{HOME}/.claude/jobs/12ab34cd/state.json", state)
    assert job_conversation(f"{HOME}/.claude", job, host) == conversation
