from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.host.git import facts, read_facts
from tests.builders import NOON


@pytest.fixture
def repository(private_home: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("repo"))
    git(path, "init", "-q", "-b", "main")
    write(path, "a.txt", "one")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "Begin at the beginning\n\nmore")
    return path


def git(path: str, *words: str) -> None:
    given = {
        "GIT_AUTHOR_NAME": "dev",
        "GIT_AUTHOR_EMAIL": "d@e",
        "GIT_COMMITTER_NAME": "dev",
        "GIT_COMMITTER_EMAIL": "d@e",
    }
    dates = {"GIT_COMMITTER_DATE": "2026-11-15T08:00:00Z", "GIT_AUTHOR_DATE": "2026-11-15T08:00:00Z"}
    subprocess.run(["git", *words], cwd=path, env={**os.environ, **given, **dates}, check=True, capture_output=True)


def write(path: str, name: str, text: str) -> str:
    full = os.path.join(path, name)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write(text)
    return full


def test_what_a_repository_says(repository: str) -> None:
    found = facts(repository, NOON)
    assert found is not None
    assert (found.at, found.root, found.branch, found.dirty, found.ahead) == (NOON, repository, "main", 0, None)
    assert (found.committed_at, found.subject) == (datetime(2026, 11, 15, 8, tzinfo=UTC), "Begin at the beginning")
    write(repository, "a.txt", "two")
    write(repository, "new/b.txt", "")
    below = facts(os.path.join(repository, "new"), NOON)
    assert below is not None
    assert (below.root, below.dirty) == (repository, 2)


def test_how_far_it_is_ahead_of_what_it_follows(repository: str, tmp_path: object) -> None:
    copy = f"{tmp_path}/copy"
    git(repository, "clone", "-q", repository, copy)
    write(copy, "b.txt", "x")
    git(copy, "add", "-A")
    git(copy, "commit", "-q", "-m", "More")
    found = facts(copy, NOON)
    assert found is not None
    assert (found.ahead, found.dirty) == (1, 0)


def test_before_the_first_commit_and_on_no_branch(repository: str, tmp_path: object) -> None:
    git(str(tmp_path), "init", "-q", "-b", "main")
    empty = facts(str(tmp_path), NOON)
    assert empty is not None
    assert (empty.branch, empty.subject, empty.committed_at) == ("main", None, None)
    git(repository, "checkout", "-q", "--detach")
    detached = facts(repository, NOON)
    assert detached is not None
    assert detached.branch is None


def test_where_there_is_no_repository_nothing_is_said(
    private_home: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert facts(str(tmp_path), NOON) is None
    assert facts("/nowhere/at/all", NOON) is None
    assert facts("/\0", NOON) is None


def test_without_git_nothing_is_said(repository: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert facts(repository, NOON) is None


def test_no_program_that_a_repository_names_is_run(repository: str, tmp_path: object) -> None:
    trap = f"{tmp_path}/sprung"
    program = write(str(tmp_path), "trap.sh", f"#!/bin/sh\necho $0 $* >> {trap}\ncat\n")
    os.chmod(program, 0o755)
    for name, value in {
        "core.fsmonitor": program,
        "core.hooksPath": f"{tmp_path}/hooks",
        "core.pager": program,
        "core.sshCommand": program,
        "core.editor": program,
        "filter.evil.clean": program,
        "filter.evil.smudge": program,
        "filter.evil.process": program,
        "filter.evil.required": "true",
        "filter.more.evil.clean": program,
        "diff.evil.textconv": program,
        "diff.external": program,
        "gpg.program": program,
        "log.showSignature": "true",
        "remote.origin.url": f"ext::{program}",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "core.askPass": program,
        "credential.helper": program,
    }.items():
        git(repository, "config", name, value)
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        os.chmod(write(f"{tmp_path}/hooks", hook, f"#!/bin/sh\necho {hook} >> {trap}\n"), 0o755)
    write(repository, ".gitattributes", "*.txt filter=evil diff=evil\n*.md filter=more.evil\n")
    # Same size and new time: only what is in it can tell whether it has changed, and that goes through filters.
    write(repository, "a.txt", "two")
    write(repository, "b.md", "x")
    os.utime(os.path.join(repository, "a.txt"), (1, 1))
    found = facts(repository, NOON)
    assert found is not None
    assert found.dirty >= 2
    assert not os.path.exists(trap)


def test_a_missing_object_is_not_fetched(repository: str, tmp_path: object) -> None:
    trap = f"{tmp_path}/sprung"
    program = write(str(tmp_path), "trap.sh", f"#!/bin/sh\necho $0 >> {trap}\n")
    os.chmod(program, 0o755)
    git(repository, "config", "remote.origin.url", repository)
    git(repository, "config", "remote.origin.uploadpack", program)
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "core.repositoryformatversion", "1")
    git(repository, "config", "extensions.partialClone", "origin")
    for folder, _, names in os.walk(os.path.join(repository, ".git", "objects")):
        for name in names:
            os.unlink(os.path.join(folder, name))
    facts(repository, NOON)
    assert not os.path.exists(trap)


def test_a_filter_that_cannot_be_switched_off_ends_it(repository: str) -> None:
    git(repository, "config", "filter.a=b.clean", "touch /tmp/never")
    assert facts(repository, NOON) is None


def test_nothing_is_written(repository: str) -> None:
    def stamps() -> dict[str, int]:
        walked = [os.path.join(folder, name) for folder, _, names in os.walk(repository) for name in names]
        return {path: os.stat(path).st_mtime_ns for path in walked}

    os.utime(os.path.join(repository, "a.txt"), (1, 1))
    before = stamps()
    assert facts(repository, NOON) is not None
    assert stamps() == before


def test_root_looks_at_anothers_repository_as_that_user(repository: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    folder = repository
    while folder not in ("/", "/tmp"):
        os.chmod(folder, 0o755)
        folder = os.path.dirname(folder)
    for path, _, names in [*os.walk(repository)]:
        for each in (path, *(os.path.join(path, name) for name in names)):
            os.chown(each, 65534, 65534)
    found = facts(repository, NOON)
    assert found is not None
    # As root, git itself would have refused what belongs to somebody else.
    assert found.subject == "Begin at the beginning"


@given(st.binary(max_size=200), st.none() | st.binary(max_size=200))
def test_whatever_git_says_can_be_read(status: bytes, commit: bytes | None) -> None:
    found = read_facts("/r", status, commit, NOON)
    assert found.dirty >= 0
    assert found.subject is None or found.subject.isprintable()
