"""What a repository says, asked of git so that nothing in the repository is ever run or written.

A repository may come from anywhere, and its configuration names programs: a file system monitor, filters, hooks, a pager, a
way to fetch what is missing. All of these are switched off by the command line, which git believes before any file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from perdure.errors import PerdureError
from perdure.host.run import run
from perdure.host.users import run_as, user_by_uid
from perdure.model.decoding import decoder_of
from perdure.model.git import GitFacts
from perdure.model.text import decode, encode

#: Seconds. A repository that takes longer is not worth waiting for.
_PATIENCE = 3.0
_OFF = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.quotePath=false",
    "status.showUntrackedFiles=normal",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "safe.bareRepository=explicit",
    "gc.auto=0",
    "maintenance.auto=false",
)
_FILTER_KEYS = ("clean", "smudge", "process")


def facts(directory: str, now: datetime) -> GitFacts | None:
    """Return what the repository says that `directory` is in; None when it is in none, or git is not there or too slow.

    Root looks at what belongs to somebody else as that user.
    """
    path = encode(directory)
    try:
        owner = os.stat(path).st_uid
    except (OSError, ValueError):
        return None
    if os.geteuid() != 0 or owner == 0:
        return _facts(directory, now)
    user = user_by_uid(owner)
    if user is None:
        return None
    try:
        answer = run_as(user, lambda: msgspec.json.encode(_facts(directory, now)))
        facts: GitFacts | None = decoder_of(GitFacts | None).decode(answer)
    except (PerdureError, msgspec.DecodeError):
        return None
    return facts


def _facts(directory: str, now: datetime) -> GitFacts | None:
    program = shutil.which("git")
    if program is None:
        return None
    git = _Git(program, directory)
    root = git.ask("rev-parse", "--show-toplevel")
    names = git.ask("config", "--list", "--name-only", "-z") if root is not None else None
    if root is None or names is None:
        return None
    if not git.without_filters(decode(names).split("\0")):
        return None
    status = git.ask(
        "status",
        "--porcelain=v2",
        "-z",
        "--branch",
        "--untracked-files=normal",
        "--ignore-submodules=all",
        "--no-renames",
    )
    if status is None:
        return None
    # `cat-file`, not `log`: that one would check signatures, with a program.
    commit = git.ask("cat-file", "commit", "HEAD")
    return read_facts(decode(root).removesuffix("\n"), status, commit, now)


def read_facts(root: str, status: bytes, commit: bytes | None, now: datetime) -> GitFacts:
    """Return what git's answers say."""
    branch: str | None = None
    ahead: int | None = None
    dirty = 0
    for line in decode(status).split("\0"):
        if line.startswith("# branch.head "):
            branch = line.removeprefix("# branch.head ")
        elif line.startswith("# branch.ab +"):
            count = line.removeprefix("# branch.ab +").partition(" ")[0]
            ahead = int(count) if count.isdecimal() else None
        elif line[:2] in ("1 ", "2 ", "u ", "? "):
            dirty += 1
    committed_at, subject = _of_commit(commit)
    return GitFacts(
        at=now,
        root=root,
        branch=None if branch == "(detached)" else branch,
        dirty=dirty,
        committed_at=committed_at,
        subject=subject,
        ahead=ahead,
    )


def _of_commit(commit: bytes | None) -> tuple[datetime | None, str | None]:
    header, _, message = (commit or b"").partition(b"\n\n")
    at: datetime | None = None
    for line in header.split(b"\n"):
        words = line.split()
        if words[:1] == [b"committer"] and len(words) > 2 and words[-2].isdigit():
            try:
                at = datetime.fromtimestamp(int(words[-2]), UTC)
            except (ValueError, OverflowError, OSError):
                at = None
    first = decode(message.strip().partition(b"\n")[0][:1000]).strip()
    return at, "".join(char for char in first if char.isprintable()) or None


class _Git:
    """One repository and the ways to ask it."""

    def __init__(self, program: str, directory: str) -> None:
        self._program = program
        self._directory = os.fsdecode(encode(directory))
        self._settings = list(_OFF)

    def without_filters(self, names: Sequence[str]) -> bool:
        """Switch every filter off that is configured anywhere: `status` would run those of changed files.

        Returns whether that can be done: a name with an equals sign cannot be said on a command line.
        """
        for name in names:
            section, _, rest = name.partition(".")
            driver, _, key = rest.rpartition(".")
            if section == "filter" and key in _FILTER_KEYS:
                if "=" in driver:
                    return False
                self._settings += [f"filter.{driver}.{each}=" for each in _FILTER_KEYS]
                self._settings.append(f"filter.{driver}.required=false")
        return True

    def ask(self, *words: str) -> bytes | None:
        """Return what git prints, None when it fails."""
        options = [word for setting in dict.fromkeys(self._settings) for word in ("-c", os.fsdecode(encode(setting)))]
        argv = [self._program, "--no-pager", "--literal-pathspecs", *options, *words]
        try:
            done = run(argv, environ=_environment(), cwd=self._directory, timeout=_PATIENCE)
        except (PerdureError, OSError, ValueError):
            return None
        return done.out if done.status == 0 else None


def _environment() -> dict[str, str]:
    """Nothing of ours that git would listen to, and nothing it could ask or fetch by."""
    kept = {name: value for name in ("PATH", "HOME", "XDG_CONFIG_HOME") if (value := os.environ.get(name))}
    if not kept.get("XDG_CONFIG_HOME", "").startswith(kept.get("HOME", "/")):
        # Root's own, when it looks as somebody else.
        kept.pop("XDG_CONFIG_HOME", None)
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        # What is missing from a partial clone would be fetched, by whatever program the repository names.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_PAGER": "cat",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
