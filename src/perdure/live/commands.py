"""What a command line of a shell is known to have done, by its words and how it ended.

A command line ends well when its last command does. So a check in the middle of it, before a pipe or a semicolon, may
have failed all the same: that is not known, and is not said.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

_CUT = "…"
_SEPARATORS = frozenset({";", "&&", "||", "|", "|&", "&"})
_REDIRECTIONS = frozenset({">", ">>", ">&", "&>", "&>>", "<", ">|"})
#: Words before a command that run it as it is.
_BEFORE = frozenset("sudo time nice nohup command exec npx bunx env xvfb-run".split())
_RUNNERS = frozenset({("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("pnpm", "exec")})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
_ROUND_THE = frozenset("( ) ! { } for while until if case select function do then else elif".split())

_TARGETS = "test tests check build lint typecheck type-check verify ci"
#: Programs whose success says that the work holds, with what they have to be asked for; () for nothing in particular.
_CHECKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("pytest jest vitest mypy pyright tox nox phpunit rspec ctest eslint xcodebuild clippy".split(), ()),
    "cargo": ("test", "build", "check", "clippy", "nextest"),
    "go": ("test", "build", "vet"),
    "ruff": ("check",),
    "tsc": ("--noemit", "-b", "--build"),
    "swift": ("test", "build"),
    "mix": ("test",),
    "rake": ("test",),
    "deno": ("test", "check", "lint"),
    "dotnet": ("test", "build"),
    "mvn": ("test", "verify", "package"),
    "gradle": tuple(_TARGETS.split()),
    "gradlew": tuple(_TARGETS.split()),
    "make": tuple(_TARGETS.split()),
    "just": tuple(_TARGETS.split()),
    **dict.fromkeys("npm pnpm yarn bun".split(), tuple(_TARGETS.split())),
}
_MENTIONED = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, _CHECKS))})(?![\w-])")
_HISTORICAL = re.compile(r"\.\.|[~^]|@\{|--check$|--name-only$")
_COMMITS = re.compile(r"(?<![\w-])git(?:\s+-[cC]\s+\S+)*\s+commit(?![\w-])")
_LOOKS = re.compile(r"(?<![\w-])git(?:\s+-[cC]\s+\S+)*\s+(?:status|diff)(?![\w-])")
_EDITS = re.compile(r"(?<![\w-])(?:(?:sed|perl)\s(?:[^|;&]*\s)?-\w*i|apply_patch\b|git\s+apply(?![\w-]))")
_MAY_EDIT = re.compile(
    r"(?<![\w-])(?:(?:mv|cp|rm|tee|patch|truncate|install|rsync|dd)\s"
    r"|git\s+(?:am|checkout|restore|stash|reset|merge|rebase|cherry-pick|revert|pull|switch|clean)(?![\w-]))"
)
#: Into a file that is neither a device nor a temporary one.
_WRITES = re.compile(r"(?<![0-9&<>=-])>{1,2}\|?\s*(?!&|/dev/|/tmp/)[\w./~$\"'{-]")


def validates(command: str) -> bool:
    """Return whether this command line, having ended well, was a check that the work holds."""
    return any(_is_check(words) for words in _must_have_succeeded(command))


def may_validate(command: str) -> bool:
    """Return whether a check is mentioned in it."""
    return _MENTIONED.search(command) is not None


def looks_over(command: str) -> bool:
    """Return whether this command line, having ended well, showed what has been changed and not committed."""
    return any(_is_look(words) for words in _must_have_succeeded(command))


def may_look_over(command: str) -> bool:
    """Return whether looking at what has been changed is mentioned in it."""
    return _LOOKS.search(command) is not None


def commits(command: str) -> bool:
    """Return whether a commit is mentioned in it: who claims that nothing was committed has to be sure."""
    return _COMMITS.search(command) is not None


def edits(command: str) -> bool:
    """Return whether it changes files in their place."""
    return _EDITS.search(command) is not None


def may_edit(command: str) -> bool:
    """Return whether files may be others after it: then a check from before says nothing of them."""
    if edits(command) or _MAY_EDIT.search(command):
        return True
    return _WRITES.search(command) is not None and not validates(command)


def verb_of(command: str) -> str | None:
    """Return in a few words what a command line is about, None when it is best shown as it is."""
    if commits(command):
        return "committing"
    for words in _commands(command):
        if _is_check(words):
            return _named_check(words)
        if _is_look(words):
            return "looking over the changes"
    return None


def _named_check(words: Sequence[str]) -> str:
    said = " ".join(words[:3])
    if re.search(r"\b(?:build|package|xcodebuild)\b", said):
        return "building"
    return (
        "checking the code" if re.search(r"lint|ruff|mypy|pyright|tsc|clippy|vet|type", said) else "running the tests"
    )


def _is_check(words: Sequence[str]) -> bool:
    if not words or words[0] not in _CHECKS:
        return False
    asked = _CHECKS[words[0]]
    rest = [word.lower() for word in words[1:]]
    if {"--version", "--help", "-h", "--collect-only"} & set(rest):
        return False
    # `npm run test:unit` and `make test-all` are tests too.
    return not asked or any(re.split(r"[:_]", word)[0] in asked or word in asked for word in rest[:3])


def _is_look(words: Sequence[str]) -> bool:
    rest = list(words[1:]) if words and words[0] == "git" else []
    while len(rest) > 1 and rest[0] in ("-C", "-c"):
        rest = rest[2:]
    rest = [word for word in rest if word != "--no-pager"]
    if not rest or rest[0] not in ("status", "diff"):
        return False
    return not any(_HISTORICAL.search(word) for word in rest[1:])


def _must_have_succeeded(command: str) -> Iterator[list[str]]:
    """Yield the commands without whose success the whole would not have ended well."""
    parts = _parts(command)
    if parts is None or any(operator in ("||", "&") for _, operator in parts):
        return
    named = [words[:1] + [word for word in words[1:] if word.startswith("-")] for words, _ in parts]
    strict = any(words[:1] == ["set"] and any("e" in word for word in words[1:]) for words in named)
    piped = any("pipefail" in words for words, _ in parts)
    last_list = (
        0 if strict else max((at + 1 for at, (_, operator) in enumerate(parts[:-1]) if operator == ";"), default=0)
    )
    for words, operator in parts[last_list:]:
        if operator not in ("|", "|&") or piped:
            yield _plain(words)


def _commands(command: str) -> list[list[str]]:
    return [_plain(words) for words, _ in _parts(command) or ()]


def _parts(command: str) -> list[tuple[list[str], str]] | None:
    """The commands, each with what follows it; None for what we cannot read as a shell would."""
    if command.endswith(_CUT) or "<<" in command:
        return None
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        tokens = list(lexer)
    except ValueError:
        return None
    parts: list[tuple[list[str], str]] = []
    words: list[str] = []
    for token in tokens:
        if token in _SEPARATORS:
            parts.append((words, token))
            words = []
        else:
            words.append(token)
    parts.append((words, ""))
    parts = [(words, operator) for words, operator in parts if words]
    return None if any(words[0] in _ROUND_THE or "(" in words or ")" in words for words, _ in parts) else parts


def _plain(words: Sequence[str]) -> list[str]:
    """A command without redirections, assignments, and what only runs it."""
    kept: list[str] = []
    skip = False
    for word in words:
        if word in _REDIRECTIONS:
            if kept and kept[-1].isdecimal():
                kept.pop()
            skip = True
        elif skip:
            skip = False
        else:
            kept.append(word)
    while kept:
        if _ASSIGNMENT.fullmatch(kept[0]) or kept[0] in _BEFORE:
            kept = kept[1:]
        elif kept[0] == "timeout" or tuple(kept[:2]) in _RUNNERS or _is_module(kept):
            kept = kept[2:]
        else:
            break
    return [_base(kept[0]), *kept[1:]] if kept else []


def _is_module(words: Sequence[str]) -> bool:
    return _PYTHON.fullmatch(_base(words[0])) is not None and words[1:2] == ["-m"]


def _base(word: str) -> str:
    return word.rpartition("/")[2]
