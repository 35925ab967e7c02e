"""Settings that are safe to change: what comes back and how, what is kept and for how long. Hooks are only shown."""

from __future__ import annotations

import os
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar import get, patch
from litestar.params import JSONBody
from msgspec import UNSET, Meta, Struct, UnsetType

from perdure.api.asking import Who, World
from perdure.api.failures import failures
from perdure.api.world import ApiWorld
from perdure.daemon import protocol
from perdure.errors import Conflict, PerdureError, Refused
from perdure.hooks.apply import Change, carry_out, read_text
from perdure.hooks.status import HookStatus, hook_places, status_of
from perdure.host import places
from perdure.host.config import config_from
from perdure.host.config_edit import with_settings
from perdure.model.config import Config, RetentionConfig
from perdure.model.digest import digest_of
from perdure.store.files import private_directory

#: A century.
_DAYS, _HOURS = 36_525, 876_600

Days: TypeAlias = Annotated[int, Meta(ge=0, le=_DAYS)]
Program: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, pattern="^[^/\\x00]+$")]


class RestoreSettings(Struct, frozen=True, kw_only=True):
    """What is started again when panes are brought back."""

    programs: tuple[str, ...]
    max_parallel: int
    memory_pressure: float
    verify_seconds: float


class LiveSettings(Struct, frozen=True, kw_only=True):
    """What the daemon does besides watching."""

    #: Whether a server that died is brought back at once.
    restore: bool


class Settings(Struct, frozen=True, kw_only=True):
    """What holds at this moment."""

    #: Of the file; to be given with a change, so that nobody else's is lost.
    version: str
    #: The file they are kept in.
    file: str
    restore: RestoreSettings
    live: LiveSettings
    retention: RetentionConfig
    hooks: list[HookStatus]


class RestoreChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out stays; null is what it is when nothing is said."""

    programs: Annotated[tuple[Program, ...], Meta(max_length=500)] | UnsetType | None = UNSET
    max_parallel: Annotated[int, Meta(ge=1, le=64)] | UnsetType | None = UNSET
    memory_pressure: Annotated[float, Meta(ge=0, le=100)] | UnsetType | None = UNSET
    verify_seconds: Annotated[float, Meta(ge=1, le=3600)] | UnsetType | None = UNSET


class LiveChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out stays; null is what it is when nothing is said."""

    restore: bool | UnsetType | None = UNSET


class RetentionChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out stays; null is what it is when nothing is said."""

    everything_hours: Annotated[int, Meta(ge=0, le=_HOURS)] | UnsetType | None = UNSET
    hourly_days: Days | UnsetType | None = UNSET
    daily_days: Days | UnsetType | None = UNSET
    events_days: Days | UnsetType | None = UNSET
    runs_days: Days | UnsetType | None = UNSET


class SettingsChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be otherwise."""

    #: As it was read: where the file has changed since, nothing is changed here.
    version: Annotated[str, Meta(max_length=64)]
    restore: RestoreChange | UnsetType = UNSET
    live: LiveChange | UnsetType = UNSET
    retention: RetentionChange | UnsetType = UNSET


@get("/api/settings", responses=failures())
async def show_settings(world: World, caller: Who) -> Settings:
    """What the file says, and how hooks stand. What was written there by hand holds once the daemon has read it."""
    world.refuse_others(caller, "settings")
    return await world.read(lambda _: _settings(world))


@patch("/api/settings", responses=failures(409))
async def change_settings(world: World, caller: Who, data: JSONBody[SettingsChange]) -> Settings:
    """Change settings in the user's configuration file: comments, and whatever else is set there, stay as they are."""
    world.refuse_others(caller, "settings")
    wanted = _wanted(data)
    await world.do(lambda: _write(world, data.version, wanted))
    names = [f"{table}.{name}" for table, values in wanted.items() for name in values]
    world.logs.audit(caller, "settings", ", ".join(names))
    await world.answers.answer(protocol.Reload(), caller.uid)
    return await world.read(lambda _: _settings(world))


def _settings(world: ApiWorld) -> Settings:
    ground, path = world.ground, _path(world)
    text = read_text(path)
    config = _said_in(text, path, world)
    restore = config.restore
    return Settings(
        version=_version(text),
        file=path,
        restore=RestoreSettings(
            programs=restore.programs,
            max_parallel=restore.max_parallel,
            memory_pressure=restore.memory_pressure,
            verify_seconds=restore.verify_seconds,
        ),
        live=LiveSettings(restore=config.live.restore),
        retention=config.retention,
        hooks=[status_of(each) for each in hook_places(ground.environ, ground.me.home, ground.state_dir)],
    )


def _said_in(text: str | None, path: str, world: ApiWorld) -> Config:
    """What a file says: whoever changes it has to have seen that. Of one that is broken, what holds instead."""
    try:
        return config_from((text or "").encode(), path, home=world.ground.me.home)
    except PerdureError:
        return world.config


def _wanted(change: SettingsChange) -> dict[str, dict[str, Any]]:
    tables = {"restore": change.restore, "live": change.live, "retention": change.retention}
    return {
        table: {name: value for name, value in msgspec.structs.asdict(values).items() if value is not UNSET}
        for table, values in tables.items()
        if not isinstance(values, UnsetType)
    }


def _write(world: ApiWorld, version: str, wanted: dict[str, dict[str, Any]]) -> None:
    """Write the file. Raises `Conflict` when it is not as the caller knew it, or changes meanwhile."""
    path = _path(world)
    before = read_text(path)
    if _version(before) != version:
        raise Conflict(f"{path} has changed since it was read; look again.")
    after = with_settings(before or "", wanted, path, home=world.ground.me.home)
    if after == (before or ""):
        return
    try:
        private_directory(os.path.dirname(os.path.realpath(path)))
    except PerdureError as error:
        raise Refused(error.message) from error
    carry_out(Change(path=path, before=before, after=after))


def _path(world: ApiWorld) -> str:
    return places.config_path(world.ground.environ, world.ground.me.home)


def _version(text: str | None) -> str:
    return "none" if text is None else digest_of(text.encode())[:32]


ROUTES = (show_settings, change_settings)
