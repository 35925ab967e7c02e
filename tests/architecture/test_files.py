"""No file in the repository says where somebody's packages come from, or where somebody's home is."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.architecture.source import ROOT, Finding, report

#: Joined here, so that this file does not name them itself.
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("crates", "io"),
        ("rubygems", "org"),
        ("anaconda", "org"),
    )
)
#: Homes that stand for nobody's: in documentation, examples and test data.
EXAMPLE_USERS = frozenset("alice bob carol dev me somebody user you".split())

_REGISTRY = re.compile("|".join(map(re.escape, REGISTRIES)) + r"|--(?:extra-)?index-url")
_HOME = re.compile(r"/(?:home|Users)/([A-Za-z0-9_][\w.-]*)|/(root)/[\w.]")
#: Only where there is no git to ask.
_NOT_OURS = re.compile(r"^(?:\.(?!ci$|gitignore$|editorconfig$).*|__pycache__|build|dist|node_modules|results)$")


def telling(name: str, text: str) -> list[Finding]:
    """Return every line that names a registry or a real home directory."""
    return [
        Finding(f"{name}:{number}", what)
        for number, line in enumerate(text.splitlines(), 1)
        for what in (*_registries(line), *_homes(line))
    ]


def _registries(line: str) -> Iterator[str]:
    for match in _REGISTRY.finditer(line):
        yield f"names a package registry: {match[0]}"


def _homes(line: str) -> Iterator[str]:
    for match in _HOME.finditer(line):
        if (match[1] or match[2]) not in EXAMPLE_USERS:
            yield f"names a home directory: {match[0]} (examples use /home/dev)"


def files() -> list[str]:
    """Return the files of the repository: those git tracks, or all that look like ours where there is no git."""
    command = ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = _walked()
    return [name for name in listed if os.path.isfile(os.path.join(ROOT, name))]


def _walked() -> list[str]:
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not _NOT_OURS.match(name)]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if not _NOT_OURS.match(name)]
    return found


def test_no_file_tells_where_it_was_made() -> None:
    findings = []
    for name in files():
        with open(os.path.join(ROOT, name), encoding="utf-8", errors="replace") as file:
            findings += telling(name, file.read())
    assert not findings, report(findings)


def test_without_git_the_same_kind_of_files_is_found() -> None:
    walked = _walked()
    assert "pyproject.toml" in walked
    assert ".ci/run" in walked
    assert not [name for name in walked if name.startswith((".git/", ".venv/"))]


@pytest.mark.parametrize(
    "text",
    [
        f"see https://{REGISTRIES[0]}/simple",
        "pip install --extra-" + "index-url=x",
        "cd /home/" + "zoe/src",
        "/Users/" + "zoe",
        "HOME=/root" + "/.config",
    ],
)
def test_a_telling_line_is_found(text: str) -> None:
    assert telling("some.md", f"first\n{text}") != []


@pytest.mark.parametrize("text", ["/home/dev/project", "the user root, whose home is /root", "/home/*/x", "~/.config"])
def test_an_example_is_left_alone(text: str) -> None:
    assert not telling("some.md", text)
