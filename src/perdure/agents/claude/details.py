"""What a Claude Code conversation is about right now, read from the end of its transcript."""

from __future__ import annotations

import re
from os.path import basename, join

from msgspec import Struct

from perdure.agents._json import count, mapping, one_line, text
from perdure.agents._records import Record
from perdure.agents._urls import host_of
from perdure.agents.claude.argv import read_launch
from perdure.agents.claude.home import config_home, find_transcript, read_registry
from perdure.agents.claude.transcript import answer, newest_first, origin, prompt_text, time_of, tokens
from perdure.model.identity import AgentDetails, Identity
from perdure.model.process import Process
from perdure.ports import HostView

_MILLION = 1_000_000
#: Models the program itself reported a window of a million tokens for.
_MILLION_MODELS = re.compile(r"claude-(?:opus|sonnet|haiku)-5-5(?![0-9])")
_WIDE = "[1m]"
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": "bedrock",
    "CLAUDE_CODE_USE_VERTEX": "vertex",
    "CLAUDE_CODE_USE_FOUNDRY": "foundry",
}
#: What stands for the branch where there is none: a detached head, or no repository at all.
_NO_BRANCH = "HEAD"
_OFF = frozenset({"", "0", "false", "no", "off"})


class _Latest(Struct):
    """The newest of each thing, filled from the end of the transcript backwards."""

    used: int | None = None
    model: str | None = None
    requested: str | None = None
    task: str | None = None
    title: str | None = None
    branch: str | None = None
    version: str | None = None
    at: object = None

    @property
    def complete(self) -> bool:
        # Title and branch stand beside these in every turn, so their absence is not worth reading on for.
        return None not in (self.used, self.model, self.task, self.version)


def describe(identity: Identity, process: Process, host: HostView) -> AgentDetails:
    """Return what is known of the conversation now."""
    home = config_home(process, host)
    path = find_transcript(home, identity.conversation, process.cwd, host) if identity.conversation else None
    latest = _read(path, host) if path else _Latest()
    began_at, parent = origin(path, host) if path else (None, None)
    entry = read_registry(process, host)[0] or {}
    named = text(entry.get("name")) if entry.get("nameSource") == "user" else None
    launched = read_launch(process).model or process.environ.get("ANTHROPIC_MODEL")
    model = latest.model or launched
    return AgentDetails(
        title=one_line(latest.title or named),
        task=one_line(latest.task),
        model=one_line(model),
        provider=provider(process),
        branch=one_line(latest.branch) if latest.branch != _NO_BRANCH else None,
        transcript=path,
        companions=_companions(path, home, host) if path else (),
        parent=parent,
        version=one_line(latest.version or text(entry.get("version"))),
        context_used=latest.used,
        context_limit=_limit(model, latest.requested or launched, process),
        began_at=began_at,
        last_activity_at=time_of({"timestamp": latest.at}) or (host.modified_at(path) if path else None),
    )


def _companions(path: str, home: str, host: HostView) -> tuple[str, ...]:
    """The directories beside the transcript: its sub-agents, the files as they were at each prompt, its tasks."""
    beside = path.removesuffix(".jsonl")
    kept = (join(home, kind, basename(beside)) for kind in ("file-history", "tasks"))
    return tuple(each for each in (beside, *kept) if host.names(each))


def provider(process: Process) -> str:
    """Return who answers: the vendor, a cloud, or the name of the host that is asked instead."""
    for variable, cloud in _CLOUDS.items():
        if process.environ.get(variable, "").lower() not in _OFF:
            return cloud
    host = host_of(process.environ.get("ANTHROPIC_BASE_URL", ""))
    return "anthropic" if not host or host == "anthropic.com" or host.endswith(".anthropic.com") else host


def _read(path: str, host: HostView) -> _Latest:
    latest = _Latest()
    for record in newest_first(path, host):
        _take(latest, record)
        if latest.complete:
            break
    return latest


def _take(latest: _Latest, record: Record) -> None:
    kind = record.get("type")
    if latest.title is None and kind in ("custom-title", "agent-name"):
        latest.title = text(record.get("customTitle")) or text(record.get("agentName"))
    if latest.task is None:
        latest.task = text(record.get("lastPrompt")) if kind == "last-prompt" else prompt_text(record)
    if record.get("isSidechain"):
        return
    latest.branch = latest.branch or text(record.get("gitBranch"))
    latest.version = latest.version or text(record.get("version"))
    if latest.at is None and time_of(record) is not None:
        latest.at = record["timestamp"]
    _take_usage(latest, record)


def _take_usage(latest: _Latest, record: Record) -> None:
    message = answer(record)
    if message is not None and tokens(message):
        if latest.used is None:
            latest.used = tokens(message)
        if latest.model is None:
            latest.model = text(message.get("model"))
            latest.requested = text(record.get("requestedModel"))
    elif latest.used is None and record.get("subtype") == "compact_boundary":
        latest.used = count(mapping(record.get("compactMetadata")).get("postTokens")) or None


def _limit(model: str | None, requested: str | None, process: Process) -> int | None:
    if model is None or process.environ.get("CLAUDE_CODE_DISABLE_1M_CONTEXT", "").lower() not in _OFF:
        return None
    if _WIDE in model or _MILLION_MODELS.search(model):
        return _MILLION
    # `opus[1m]` on the command line says nothing about a model that was switched to later.
    family = (requested or "").partition("[")[0]
    return _MILLION if family and _WIDE in (requested or "") and family in model else None
