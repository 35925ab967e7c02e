"""Every option of every command: whatever stands behind its `=` is its value, or a sentence."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

import pytest

from perdure.cli.main import COMMANDS, Parser, parser_of
from perdure.errors import UsageError

#: Ends the options where it stands alone; behind a `=` it is a text like any other.
DASHES = "--"


class Option(NamedTuple):
    """An option that takes a value, by one of its names."""

    command: str
    module: str
    name: str

    def parser(self) -> Parser:
        """What reads the words for its command, with nothing else needed."""
        parser = parser_of(import_module(f"perdure.cli.{self.module}"), self.command, "")
        for action in parser._actions:
            action.required = False
            if not action.option_strings:
                action.nargs = "*"
        return parser


def commands() -> Iterator[tuple[str, str]]:
    """The name and the module of every command, and of every verb of those that have verbs."""
    for name, (module, _) in {"": ("overview", ""), **COMMANDS}.items():
        verbs = getattr(import_module(f"perdure.cli.{module}"), "VERBS", None)
        if verbs is None:
            yield f"perdure {name}".strip(), module
        else:
            yield from ((f"perdure {name} {verb}", of_verb) for verb, (of_verb, _) in verbs.items())


def options() -> Iterator[Option]:
    for command, module in commands():
        for action in Option(command, module, "").parser()._actions:
            if action.nargs != 0:
                yield from (Option(command, module, name) for name in action.option_strings)


OPTIONS = list(options())


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: f"{option.command} {option.name}")
def test_two_dashes_are_a_value_or_a_sentence_and_never_nothing(option: Option) -> None:
    parser = option.parser()
    action: argparse.Action = parser._option_string_actions[option.name]
    joined = f"{option.name}={DASHES}" if option.name.startswith(DASHES) else f"{option.name}{DASHES}"
    value: object
    try:
        value = getattr(parser.parse_args([joined]), action.dest)
    except UsageError as error:
        value = error
    if isinstance(value, UsageError):
        assert DASHES in value.message
        assert value.message.isprintable()
    else:
        # A path may have been made absolute.
        values = value if isinstance(value, list) else [value]
        assert [os.path.basename(str(each)) for each in values] == [DASHES]


def test_all_commands_are_gone_through() -> None:
    assert {option.command.split()[1] for option in OPTIONS} >= {"chats", "jobs", "history", "restore", "save", "up"}
    assert ("perdure chats ls", "--limit") in {(option.command, option.name) for option in OPTIONS}
