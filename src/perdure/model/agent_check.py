"""What is wrong with an agent a user described, a sentence for each mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.model.agent import BOTTOM, ID, IN_TITLE, LAST, TITLE, AgentSpec, ScreenRule
from perdure.model.screen import State
from perdure.model.secrets import is_secret_name

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_RULE = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_OPTION = re.compile(r"--?[^\s,=<\[-][^\s,=<\[]*(?:, --?[^\s,=<\[-][^\s,=<\[]*)*(?: (?:<[^<>]+>|\[[^\[\]]+\]))?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Programs that run others: an agent by such a name would be every script on the machine.
_RUNNERS = frozenset("sh bash dash zsh fish node nodejs bun deno python python3 env sudo tmux ssh".split())
_REASONS = frozenset({"permission", "question", "limit"})
_MOST_LINES = 60


def mistakes(name: str, spec: AgentSpec) -> Iterator[str]:
    """Yield what is wrong, each a clause that follows `[agents.NAME]: `."""
    if not _NAME.fullmatch(name):
        yield "its name must be small letters, digits, - and _, and begin with a letter"
    yield from _program(spec)
    yield from _patterns(spec)
    yield from _command_line(spec)
    for variable in spec.environment:
        if not _VARIABLE.fullmatch(variable):
            yield f"environment has {variable!r}, which is no variable's name"
        elif is_secret_name(variable):
            yield f"environment has {variable}, which looks like a secret: secrets are never kept"
    for pattern in spec.transcripts:
        yield from _transcript(pattern, spec)
    seen: set[str] = set()
    for rule in spec.screen:
        if rule.id in seen:
            yield f"two screen rules are called {rule.id!r}"
        seen.add(rule.id)
        yield from (f"screen rule {rule.id!r}: {what}" for what in _rule(rule))


def _program(spec: AgentSpec) -> Iterator[str]:
    if not spec.binaries:
        yield "binaries names no program, so nothing could be recognised"
    for binary in spec.binaries:
        if not binary or "/" in binary:
            yield f"binaries has {binary!r}; give the program's name without directories"
        elif binary in _RUNNERS:
            yield f"binaries has {binary!r}, which runs other programs: give the name of the agent's own script"
    for package in spec.packages:
        if len(package.strip("/")) < 2 or not (package.startswith("/") and package.endswith("/")):
            yield f"packages has {package!r}; give a part of a path between slashes, such as '/@vendor/agent/'"
    if spec.scripts and not spec.packages:
        yield "scripts means nothing without packages, which say where these scripts are the agent's"


def _patterns(spec: AgentSpec) -> Iterator[str]:
    wrong = _not_a_pattern(spec.id)
    if wrong:
        yield f"id is no regular expression: {wrong}"
    elif any(re.fullmatch(spec.id, text) for text in ("", "-", "--help", "-x")):
        yield "id must fit neither an empty text nor one that begins with a dash, for that would be an option"
    elif re.compile(spec.id).groups:
        yield "id must not capture: write (?:…) instead of (…)"
    for sign in spec.signs:
        pattern = sign.removeprefix(IN_TITLE)
        if wrong := _not_a_pattern(pattern):
            yield f"signs has {sign!r}, which is no regular expression: {wrong}"
        elif re.search(pattern, ""):
            yield f"signs has {sign!r}, which fits an empty line, so that it would be on everybody's screen"


def _command_line(spec: AgentSpec) -> Iterator[str]:
    for field, declared in (("keep", spec.keep), ("drop", spec.drop)):
        for line in declared:
            if not _OPTION.fullmatch(line):
                yield f"{field} has {line!r}; declare options as --help prints them, such as '-m, --model <name>'"
    for field, words in (("resume", spec.resume), ("fresh", spec.fresh)):
        if words and sum(word.count(ID) for word in words) != 1:
            yield f"{field} must hold {ID} once, where the conversation's id goes"
    for word in spec.named_by:
        if not word or word == "--" or any(char.isspace() for char in word):
            yield f"named_by has {word!r}, which is neither an option nor a word"


def _transcript(pattern: str, spec: AgentSpec) -> Iterator[str]:
    if pattern.count(ID) != 1:
        yield f"transcripts has {pattern!r}, which must hold {ID} once"
    variable = re.match(r"\$([A-Za-z_][A-Za-z0-9_]*)/", pattern)
    if variable and variable[1] not in spec.environment:
        yield f"transcripts has {pattern!r}, and environment does not name {variable[1]}, so that it is never read"
    elif not variable and not pattern.startswith(("/", "~/")):
        yield f"transcripts has {pattern!r}, which must begin with /, ~/ or $VARIABLE/"
    if "**" in pattern or ".." in pattern.split("/"):
        yield f"transcripts has {pattern!r}; * stands for a part of one name, and .. is not followed"


def _rule(rule: ScreenRule) -> Iterator[str]:
    if not _RULE.fullmatch(rule.id):
        yield "its id must be small words with dots between them, such as 'busy.footer'"
    for field, text in (("match", rule.match), ("unless", rule.unless)):
        if wrong := _not_a_pattern(text):
            yield f"{field} is no regular expression: {wrong}"
    if not rule.match:
        yield "match is empty, which would fit any line"
    if rule.region not in (TITLE, LAST, BOTTOM):
        yield f"region must be {TITLE}, {LAST} or {BOTTOM}, not {rule.region!r}"
    if not 1 <= rule.lines <= _MOST_LINES:
        yield f"lines must be from 1 to {_MOST_LINES}"
    if rule.state and rule.state not in {state.value for state in State}:
        yield f"state must be one of {', '.join(state.value for state in State)}, or left out for a viewer"
    if rule.state == State.ATTENTION and rule.reason not in _REASONS:
        yield "attention needs a reason: permission, question or limit"
    if rule.state != State.ATTENTION and rule.reason:
        yield "only attention has a reason"
    if not 0 < rule.confidence <= 1:
        yield "confidence must be above 0 and at most 1"


def _not_a_pattern(text: str) -> str | None:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return None
