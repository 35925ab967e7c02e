from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live import commands


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "python3 -m pytest -q tests",
        ".venv/bin/pytest -q",
        "cd x && pytest -q && echo fine",
        "CI=1 timeout 60 npx jest --silent",
        "uv run pytest 2>&1",
        "npm run test:unit",
        "pnpm typecheck",
        "make check",
        "cargo clippy -- -D warnings",
        "set -e; pytest; echo fine",
        "set -o pipefail && pytest | tail",
        "cd x; go test ./...",
        "tsc --noEmit",
        "pytest > log.txt 2>&1",
    ],
)
def test_a_check_that_must_have_gone_well(command: str) -> None:
    assert commands.validates(command)
    assert commands.may_validate(command)


@pytest.mark.parametrize(
    "command",
    [
        "pytest | tail -3",
        "pytest || true",
        "pytest; true",
        "pytest &",
        "! pytest",
        "(pytest)",
        "if pytest; then echo; fi",
        "pytest --collect-only",
        "cat <<EOF; pytest; EOF",
        "pytest -k 'a",
        "pytest -q and so on and on…",
        "npm install",
        "make clean",
        "echo pytest",
        "grep -r pytest .",
        "cargo fmt",
    ],
)
def test_a_check_that_may_have_failed_or_was_none(command: str) -> None:
    assert not commands.validates(command)


@pytest.mark.parametrize(
    ("command", "looks"),
    [
        ("git status", True),
        ("git status --short", True),
        ("git -C sub diff", True),
        ("git --no-pager diff --stat", True),
        ("git diff --cached", True),
        ("git diff --check", False),
        ("git diff HEAD~1", False),
        ("git diff a..b", False),
        ("git log", False),
        ("git status | head", False),
    ],
)
def test_looking_over_what_was_changed(command: str, looks: bool) -> None:
    assert commands.looks_over(command) == looks


@pytest.mark.parametrize(
    "command", ["git commit -m x", "git add . && git commit -F - <<'E'", "git -c a=b commit --amend…"]
)
def test_a_commit_is_noticed_wherever_it_stands(command: str) -> None:
    assert commands.commits(command)
    assert not commands.commits("git commit-tree x; echo committed")


@pytest.mark.parametrize("command", ["sed -i s/a/b/ x", "perl -pi -e s/a/b/ x", "git stash", "echo a > b.py", "mv a b"])
def test_what_may_change_files(command: str) -> None:
    assert commands.may_edit(command)


@pytest.mark.parametrize(
    "command", ["ls 2>/dev/null", "sed -n 1,5p x", "pytest > log.txt", "echo '->'", "grep -i x y", "ls 2>&1"]
)
def test_what_does_not(command: str) -> None:
    assert not commands.may_edit(command)


@given(st.text(alphabet="pytest git|&;()<>$'\"\\\n…diffcommit -", max_size=60))
def test_nothing_it_is_given_makes_it_fail(command: str) -> None:
    for judge in (commands.validates, commands.looks_over, commands.commits, commands.may_edit, commands.verb_of):
        judge(command)
