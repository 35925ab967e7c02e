"""Reading config.toml, one sentence for each mistake."""

from __future__ import annotations

import msgspec

from perdure.errors import ConfigError
from perdure.model.config import Config


def read_config(path: str) -> Config:
    """Return what the file sets, the defaults when there is no file."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error.strerror}.") from error
    return _checked(parse_config(raw, path), path)


def parse_config(raw: bytes, path: str) -> Config:
    """Return the configuration in `raw`; `path` is only named in the message."""
    import tomllib  # a third of a cold start, and most machines have no configuration

    try:
        return msgspec.convert(tomllib.loads(raw.decode()), Config)
    except UnicodeDecodeError as error:
        raise ConfigError(f"The configuration {path} is not UTF-8 (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The configuration {path} is not TOML: {error}.") from error
    except RecursionError:
        raise ConfigError(f"The configuration {path} is not TOML we can read: too much within something else.") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"The configuration {path} is wrong: {error}.") from error


def _checked(config: Config, path: str) -> Config:
    if not 1 <= config.scrollback.lines <= 1_000_000:
        raise ConfigError(f"The configuration {path} is wrong: scrollback.lines must be from 1 to 1000000.")
    if not 0.1 <= config.tmux.timeout_seconds <= 600:
        raise ConfigError(f"The configuration {path} is wrong: tmux.timeout_seconds must be from 0.1 to 600.")
    if min(config.retention.everything_hours, config.retention.hourly_days, config.retention.daily_days) < 0:
        raise ConfigError(f"The configuration {path} is wrong: retention cannot be negative.")
    if config.zone != "UTC":
        _check_zone(config.zone, path)
    return config


def _check_zone(zone: str, path: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(f"The configuration {path} is wrong: there is no time zone {zone!r}.") from error
