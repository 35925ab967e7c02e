"""What is wrong with an agent a user described, a sentence for each mistake."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from perdure.model.agent import BOTTOM, ID, IN_TITLE, LAST, PROMPT, TITLE, AgentSpec, ScreenRule
from perdure.model.screen import State
from perdure.model.secrets import is_secret_name

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_RULE = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_OPTION = re.compile(r"--?[^\s,=<\[-][^\s,=<\[]*(?:, --?[^\s,=<\[-][^\s,=<\[]*)*(?: (?:<[^<>]+>|\[[^\[\]]+\]))?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Programs that run others: an agent by such a name would be every script on the machine.
_RUNNERS = frozenset(
    """
    sh bash dash zsh fish ksh tcsh node nodejs npm npx bun bunx deno tsx python pypy uv uvx pipx perl ruby java
    env sudo doas su nohup nice timeout xargs script watch tmux screen ssh docker podman
    """.split()
)
_BINARY = re.compile(r"[\w.+@][\w.+@-]*")
_REASONS = frozenset({"permission", "question", "limit", "login"})
_MOST_LINES = 60


def mistakes(name: str, spec: AgentSpec) -> Iterator[str]:
    """Yield what is wrong, each a clause that follows `[agents.NAME]: `."""
    if not _NAME.fullmatch(name):
        yield "its name must be at most 32 small letters, digits, - and _, and begin with a letter"
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
        if not _BINARY.fullmatch(binary):
            yield f"binaries has {binary!r}; give the program's name without directories, blanks and wildcards"
        elif binary.rstrip("0123456789.") in _RUNNERS:
            yield f"binaries has {binary!r}, which runs other programs: give the name of the agent's own script"
    for package in spec.packages:
        if len(package.strip("/")) < 2 or not (package.startswith("/") and package.endswith("/")):
            yield f"packages has {package!r}; give a part of a path between slashes, such as '/@vendor/agent/'"
    if spec.scripts and not spec.packages:
        yield "scripts means nothing without packages, which say where these scripts are the agent's"


def _patterns(spec: AgentSpec) -> Iterator[str]:
    wrong = _not_a_pattern(spec.id) or _not_a_pattern(f"(?:{spec.id})")
    if wrong:
        yield f"id is no regular expression that can be part of another: {wrong}"
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
        elif words and not any(word == ID or re.fullmatch(rf"--?[^=]+={re.escape(ID)}", word) for word in words):
            yield f"{field} must hold {ID} as a word of its own or after an option and =, so that it is found again"
        if "--" in words:
            yield f"{field} must not hold --, after which no option comes back"
    if spec.begin and spec.begin[0] not in spec.binaries:
        yield "begin must start with one of binaries, so that what it starts is recognised"
    if spec.prompt and sum(word.count(PROMPT) for word in spec.prompt) != 1:
        yield f"prompt must hold {PROMPT} once, where what is asked for goes"
    for form in spec.not_agents:
        if not form.split():
            yield "not_agents has an empty word, which would be every run of it"
        elif tuple(form.split()) == spec.resume[: len(form.split())] or form in (*spec.resume, *spec.fresh):
            yield f"not_agents has {form!r}, with which a conversation is brought back: it would not be known again"
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
        yield "attention needs a reason: permission, question, limit or login"
    if rule.state != State.ATTENTION and rule.reason:
        yield "only attention has a reason"
    if not 0 < rule.confidence <= 1:
        yield "confidence must be above 0 and at most 1"


def _not_a_pattern(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            # What Python only warns of today is an ambiguity its writer should know about.
            warnings.simplefilter("error")
            re.compile(text)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        return str(error)
    return "a repetition within a repetition can take forever" if _may_explode(text) else None


def _may_explode(text: str) -> bool:
    """Whether something without an end is repeated without an end, or alternatives are: `(a+)+`, `(a|a)*`.

    What such a pattern does not fit it may try for years, and the machine would not be saved meanwhile.
    """
    text = re.sub(r"\\.", "x", text)
    text = re.sub(r"\[\^?\]?[^\]]*\]", "x", text)
    while group := re.search(r"\((?:\?(?:[:=!]|<[=!]|P?<\w+>))?([^()]*)\)([*+]|\{\d*,\}|\{\d*,\d{3,}\})?", text):
        endless = re.search(r"[*+]|\{\d*,\}", group[1]) is not None
        if group[2] and (endless or "|" in group[1]):
            return True
        # What is in the group counts for the one around it.
        text = (
            text[: group.start()]
            + ("x*" if endless or group[2] else "x|x" if "|" in group[1] else "x")
            + text[group.end() :]
        )
    return False
