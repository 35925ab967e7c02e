"""What can be wrong with `[thoughts]` in config.toml."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.model.config import ThoughtsConfig

_SOURCES, _APIS = ("derived", "model", "command"), ("openai", "anthropic")
_ENDPOINT = r"(https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?(/[^\s?#@]*)?"
_HERE = r"localhost|127\.\d+\.\d+\.\d+|\[::1\]"


def mistakes_in_thoughts(thoughts: ThoughtsConfig) -> Iterator[str]:
    """Yield a clause for each mistake, which begins with the name of the field."""
    if thoughts.source not in _SOURCES:
        yield f"source is {thoughts.source!r}, and must be derived, model or command"
    if thoughts.source == "model" or thoughts.endpoint:
        yield from _mistakes_in_endpoint(thoughts)
    if thoughts.api not in _APIS:
        yield f"api is {thoughts.api!r}, and must be openai or anthropic"
    if thoughts.source == "model" and not thoughts.model:
        yield "model must be named when a model is asked"
    if len(thoughts.model) > 200:
        yield "model has more than 200 characters"
    if thoughts.key_variable and not (thoughts.key_variable.isascii() and thoughts.key_variable.isidentifier()):
        # Not repeated: it may be the key itself.
        yield "key_variable is no variable's name; it names the variable that holds the key, and is not the key"
    if not 1 <= thoughts.max_calls_per_hour <= 3600:
        yield "max_calls_per_hour must be from 1 to 3600"
    for name in ("max_cost_per_day", "price_in", "price_out"):
        if not 0 <= getattr(thoughts, name) <= 1_000_000:
            yield f"{name} must be from 0 to 1000000"
    yield from _mistakes_in_command(thoughts)
    hot, warm, cold = thoughts.cadence
    if not 5 <= hot <= 300:
        yield "cadence begins with the shortest time, which must be from 5 to 300 seconds"
    elif not hot <= warm <= 600 or not warm <= cold <= 1800:
        yield "cadence must not fall, and must not exceed 600 and 1800 seconds"


def _mistakes_in_endpoint(thoughts: ThoughtsConfig) -> Iterator[str]:
    found = re.fullmatch(_ENDPOINT, thoughts.endpoint)
    if found is None:
        yield "endpoint must be an address such as https://example.org/v1, without a name, a password or a query in it"
    elif found[1] == "http" and thoughts.key_variable and not re.fullmatch(_HERE, found[2]):
        yield "endpoint must begin with https:// when a key is sent to another machine"


def _mistakes_in_command(thoughts: ThoughtsConfig) -> Iterator[str]:
    if thoughts.source == "command" and not thoughts.command:
        yield "command must be given when a command is asked"
    if any("\0" in word for word in thoughts.command):
        yield "command has an argument that cannot be one"
    if thoughts.command and not thoughts.command[0]:
        yield "command begins with an empty argument, which is no program"
