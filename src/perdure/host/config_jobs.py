"""Reading `[jobs]` of config.toml."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from perdure.host.config_words import sentence, shown
from perdure.model.backend_check import mistakes_in_backend
from perdure.model.config import BackendConfig, JobsConfig
from perdure.model.decoding import converted

_PATTERN = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*", re.ASCII)
_CENTURY = 36525 * 86400
#: What each number may be.
_RANGES = {
    "wait_seconds": (1, 86400),
    "poll_bytes": (1000, 64 << 20),
    "log_bytes": (64 << 10, 1 << 40),
    "keep_seconds": (0, _CENTURY),
    "keep_ended": (0, 100_000),
    "max_running": (1, 10_000),
    "max_per_owner": (1, 10_000),
    "grace_seconds": (0, 600),
}


def read_jobs(table: object) -> tuple[JobsConfig, list[str]]:
    """Return what is set, and a sentence without its full stop for every mistake, each with the field it is about."""
    if not isinstance(table, dict):
        return JobsConfig(), ["jobs must be a table: [jobs]"]
    wrong: list[str] = []
    fields: dict[str, object] = {}
    backends = _backends(table.get("backends", {}), wrong)
    # One by one: otherwise only the first mistake would be said.
    for name, value in table.items():
        if name == "backends":
            continue
        try:
            converted({name: value}, JobsConfig)
        except msgspec.ValidationError as error:
            wrong.append(f"[jobs]: {sentence(str(error))}")
        else:
            fields[name] = value
    jobs = msgspec.structs.replace(converted(fields, JobsConfig), backends=backends)
    return jobs, wrong + [f"jobs.{each}" for each in mistakes_in_jobs(jobs)]


def _backends(tables: object, wrong: list[str]) -> dict[str, BackendConfig]:
    if not isinstance(tables, dict):
        wrong.append("jobs.backends must be tables, such as [jobs.backends.mine]")
        return {}
    backends = {}
    for name, table in tables.items():
        where = f"[jobs.backends.{shown(name)}]"
        try:
            backend = converted(table, BackendConfig)
        except msgspec.ValidationError as error:
            wrong.append(f"{where}: {sentence(str(error))}")
        else:
            wrong += [f"{where}: {what}" for what in mistakes_in_backend(name, backend)]
            backends[name] = backend
    return backends


def mistakes_in_jobs(jobs: JobsConfig) -> Iterator[str]:
    """Yield a clause for each mistake, which begins with the name of the field."""
    for name, (least, most) in _RANGES.items():
        if not least <= getattr(jobs, name) <= most:
            yield f"{name} is {getattr(jobs, name)!r}, and must be from {least} to {most}"
    for pattern in jobs.environment:
        if not _PATTERN.fullmatch(pattern):
            yield f"environment has {pattern!r}, which is no variable's name (with `*` for anything)"
    for name in jobs.secrets:
        if not (name.isascii() and name.isidentifier()):
            # Not repeated: it may be the secret itself.
            yield "secrets has something that is no variable's name; it names the variables, and not what is in them"
