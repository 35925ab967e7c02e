"""Reading config.toml, one sentence for each mistake."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from perdure.errors import ConfigError
from perdure.host.config_chats import read_chats
from perdure.host.config_jobs import read_jobs
from perdure.host.config_thoughts import mistakes_in_thoughts
from perdure.host.config_words import sentence, shown
from perdure.model.agent import AgentSpec
from perdure.model.config import ApiConfig, Config, RestoreConfig
from perdure.model.decoding import converted

_Kind = TypeVar("_Kind")
_CENTURY = 36525
#: Variables that tie a process to the terminal it was started in.
_OF_A_TERMINAL = frozenset({"TMUX", "TMUX_PANE", "TERM"})


def read_config(path: str, *, home: str, required: bool = False) -> Config:
    """Return what the file sets, with `~` for `home`; the defaults when there is no file and none is `required`."""
    try:
        with open(path, "rb", opener=_open) as file:
            _refuse_endless(os.fstat(file.fileno()), path)
            raw = file.read()
    except FileNotFoundError:
        if required:
            # Whoever names a file means what is in it: without, what it excludes would be kept.
            raise ConfigError(f"There is no configuration {path}, though PERDURE_CONFIG names it.") from None
        return Config()
    except OSError as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error.strerror}.") from error
    return config_from(raw, path, home=home)


def _open(path: str, flags: int) -> int:
    # Whoever opens a fifo would wait for somebody to write, and the daemon with them.
    return os.open(path, flags | os.O_NONBLOCK)


def _refuse_endless(status: os.stat_result, path: str) -> None:
    """Raise for what is no file that has an end; /dev/null, which is how one names no configuration at all, has one."""
    if stat.S_ISREG(status.st_mode) or os.path.samestat(status, os.stat(os.devnull)):
        return
    raise ConfigError(f"The configuration {path} is not a regular file.")


def config_from(raw: bytes, path: str, *, home: str) -> Config:
    """Return what a file of this content sets, with `~` for `home`. Raises `ConfigError` with every mistake in it."""
    return _at_home(_checked(parse_config(raw, path), path), home, path)


def parse_config(raw: bytes, path: str) -> Config:
    """Return the configuration in `raw`; `path` is only named in the message."""
    import tomllib  # a third of a cold start, and most machines have no configuration

    try:
        document = tomllib.loads(raw.decode())
        agents = _read_agents(document.pop("agents", {}), path)
        chats = _right(read_chats(document.pop("chats", {})), path)
        jobs = _right(read_jobs(document.pop("jobs", {})), path)
        return msgspec.structs.replace(converted(document, Config), agents=agents, chats=chats, jobs=jobs)
    except UnicodeDecodeError as error:
        raise ConfigError(f"The configuration {path} is not UTF-8 (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The configuration {path} is not TOML: {error}.") from error
    except RecursionError:
        raise ConfigError(
            f"The configuration {path} is not TOML we can read: too much within something else."
        ) from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"The configuration {path} is wrong: {error}.") from error


def _read_agents(tables: object, path: str) -> dict[str, AgentSpec]:
    """Return the agents a user added; each mistake in them is named, with the agent it is about."""
    if not isinstance(tables, dict):
        raise ConfigError(f"The configuration {path} is wrong: agents must be tables, such as [agents.mine].")
    if not tables:
        return {}
    from perdure.model.agent_check import mistakes

    agents, wrong = {}, []
    for name, table in tables.items():
        try:
            agents[name] = converted(table, AgentSpec)
        except msgspec.ValidationError as error:
            wrong.append(f"[agents.{shown(name)}]: {sentence(str(error))}")
        else:
            wrong += [f"[agents.{shown(name)}]: {what}" for what in mistakes(name, agents[name])]
    binaries = [binary for spec in agents.values() for binary in set(spec.binaries)]
    for binary in sorted({each for each in binaries if binaries.count(each) > 1}):
        wrong.append(f"two of its agents have the program {binary!r}")
    if wrong:
        raise ConfigError("\n".join(f"The configuration {path} is wrong: {each}." for each in wrong))
    return agents


def _right(read: tuple[_Kind, list[str]], path: str) -> _Kind:
    """Return what a section sets. Raises with every mistake in it."""
    section, wrong = read
    if wrong:
        raise ConfigError("\n".join(f"The configuration {path} is wrong: {each}." for each in wrong))
    return section


def _checked(config: Config, path: str) -> Config:
    if not 1 <= config.scrollback.lines <= 1_000_000:
        raise ConfigError(f"The configuration {path} is wrong: scrollback.lines must be from 1 to 1000000.")
    if not 0.1 <= config.tmux.timeout_seconds <= 600:
        raise ConfigError(f"The configuration {path} is wrong: tmux.timeout_seconds must be from 0.1 to 600.")
    retention = config.retention
    of_snapshots = (retention.everything_hours / 24, retention.hourly_days, retention.daily_days)
    if not all(0 <= days <= _CENTURY for days in (*of_snapshots, retention.events_days, retention.runs_days)):
        raise ConfigError(f"The configuration {path} is wrong: retention must be from 0 to 100 years.")
    if wrong := list(_mistakes_in_restore(config.restore)):
        raise ConfigError("\n".join(f"The configuration {path} is wrong: restore.{each}." for each in wrong))
    if wrong := list(_mistakes_in_api(config.api)):
        raise ConfigError("\n".join(f"The configuration {path} is wrong: api.{each}." for each in wrong))
    if wrong := list(mistakes_in_thoughts(config.thoughts)):
        raise ConfigError("\n".join(f"The configuration {path} is wrong: thoughts.{each}." for each in wrong))
    for zone in {config.zone, config.chats.zone or config.zone} - {"UTC"}:
        _check_zone(zone, path)
    return config


def _mistakes_in_restore(restore: RestoreConfig) -> Iterator[str]:
    for name in restore.programs:
        if not name or "/" in name or "\0" in name:
            yield f"programs has {name!r}, which is no program's name (a name without a directory)"
    if not 1 <= restore.max_parallel <= 64:
        yield "max_parallel must be from 1 to 64"
    for name in restore.environment:
        if not (name.isascii() and name.isidentifier()):
            yield f"environment has {name!r}, which is no variable's name"
        elif name in _OF_A_TERMINAL:
            yield f"environment has {name}, which belongs to the pane a program was in"
    if not 0 <= restore.memory_pressure <= 100:
        yield "memory_pressure must be from 0 to 100"
    if not 1 <= restore.verify_seconds <= 3600:
        yield "verify_seconds must be from 1 to 3600"
    flags = restore.tmux_persist_flags
    if flags and not flags[0].startswith("-"):
        yield f"tmux_persist_flags begins with {flags[0]!r}, which is no flag"
    if any(not flag or "\0" in flag for flag in flags):
        yield "tmux_persist_flags has a flag that is empty or cannot be an argument"


def _mistakes_in_api(api: ApiConfig) -> Iterator[str]:
    if not 0 <= api.port <= 65535:
        yield "port must be from 0 to 65535"
    if not api.host or not api.host.isascii() or not api.host.isprintable():
        yield f"host is {shown(api.host)}, which is no address"
    for name in api.hosts:
        if not name or not name.isascii() or not name.isprintable() or "/" in name or " " in name:
            yield f"hosts has {shown(name)}, which is no name of a machine"
    if api.attach not in ("auto", "always", "never"):
        yield f"attach is {shown(api.attach)}, and must be auto, always or never"
    if bool(api.tls_cert) != bool(api.tls_key):
        yield "tls_cert and tls_key are needed together"


def _at_home(config: Config, home: str, path: str) -> Config:
    """Return the configuration with every path in it absolute: a relative one would depend on who runs us where."""

    def absolute(name: str, value: str) -> str:
        full = os.path.join(home, value[2:]) if value.startswith("~/") else value
        if not os.path.isabs(full) or "\0" in full:
            raise ConfigError(f"The configuration {path} is wrong: {name} must be an absolute path or begin with ~/.")
        return full

    replace = msgspec.structs.replace
    sockets = tuple(absolute("tmux.sockets", socket) for socket in config.tmux.sockets)
    states = tuple(absolute("export.tmux_state", state) for state in config.export.tmux_state)
    persist = absolute("export.tmux_persist_dir", config.export.tmux_persist_dir)
    api = replace(
        config.api,
        unix_socket=config.api.unix_socket and absolute("api.unix_socket", config.api.unix_socket),
        tls_cert=config.api.tls_cert and absolute("api.tls_cert", config.api.tls_cert),
        tls_key=config.api.tls_key and absolute("api.tls_key", config.api.tls_key),
    )
    legacy = config.chats.legacy_dir and absolute("chats.legacy_dir", config.chats.legacy_dir)
    return replace(
        config,
        roster=absolute("roster", config.roster),
        tmux=replace(config.tmux, sockets=sockets),
        export=replace(config.export, tmux_state=states, tmux_persist_dir=persist),
        chats=replace(config.chats, legacy_dir=legacy),
        api=api,
    )


def _check_zone(zone: str, path: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(f"The configuration {path} is wrong: there is no time zone {zone!r}.") from error
