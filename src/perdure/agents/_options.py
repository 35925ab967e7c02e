"""Reading an agent's own command line the way the agent does.

Most agents print their grammar in `--help`: `-r, --resume [value]`, `--add-dir <directories...>`. A `Grammar` is
made of such lines and follows the rules of the option parsers behind them (commander and its kin):

* `<value>` takes the next word whatever it is, `[value]` only one that does not look like an option,
  `<values...>` one and then all words up to the next option, and `[values...]` only these;
* `--flag=value` and `-fVALUE` carry the value themselves; `-ab` is `-a -b` when `-a` takes no value;
* after `--` everything is an operand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import Enum

from msgspec import Struct


class Takes(Enum):
    """How many values an option takes."""

    NOTHING = 0
    ONE = 1
    MAYBE = 2
    MANY = 3
    ANY = 4


class Argument(Struct, frozen=True, kw_only=True):
    """One option with its values, or one operand, and the words that say it."""

    #: The option's last declared name; as written when it is not known; None for an operand.
    name: str | None
    values: tuple[str, ...] = ()
    words: tuple[str, ...]
    known: bool = True
    #: False for an option at the end of the line that lacks its value.
    complete: bool = True


class Grammar:
    """The options of one program, declared as its `--help` prints them, one a line."""

    def __init__(self, declared: str, *, abbreviated: bool = False) -> None:
        """With `abbreviated` the beginning of a long option stands for it when it is no other's, as argparse has it."""
        self._options: dict[str, tuple[str, Takes]] = {}
        self._abbreviated = abbreviated
        for line in declared.splitlines():
            if line.strip():
                self._declare(line.strip())

    def _declare(self, line: str) -> None:
        takes = Takes.NOTHING
        if line.endswith("...>"):
            takes = Takes.MANY
        elif line.endswith("...]"):
            takes = Takes.ANY
        elif line.endswith(">"):
            takes = Takes.ONE
        elif line.endswith("]"):
            takes = Takes.MAYBE
        names = [word.rstrip(",") for word in line.split() if word.startswith("-")]
        for name in names:
            self._options[name] = (names[-1], takes)

    @property
    def names(self) -> frozenset[str]:
        """Every name an option goes by."""
        return frozenset(self._options)

    def name_of(self, option: str) -> str:
        """Return the name under which `parse` gives an option: its last declared one; itself when it is not known."""
        return self._options[option][0] if option in self._options else option

    def parse(self, words: Sequence[str]) -> Iterator[Argument]:
        """Yield the arguments in order. Any words at all give some answer."""
        rest = list(reversed(words))
        while rest:
            word = rest.pop()
            if word == "--":
                while rest:
                    operand = rest.pop()
                    yield Argument(name=None, values=(operand,), words=("--", operand))
            elif not _looks_like_option(word):
                yield Argument(name=None, values=(word,), words=(word,))
            elif (option := self._option(word)) is not None:
                yield self._separate(word, option, rest)
            else:
                yield self._attached(word, rest)

    def _option(self, name: str) -> tuple[str, Takes] | None:
        """The option of this name, or of the only name that begins so."""
        if name in self._options or not self._abbreviated or not name.startswith("--"):
            return self._options.get(name)
        meant = [option for option in self._options if option.startswith(name)]
        return self._options[meant[0]] if len(meant) == 1 else None

    def _separate(self, word: str, option: tuple[str, Takes], rest: list[str]) -> Argument:
        name, takes = option
        values: list[str] = []
        if takes in (Takes.ONE, Takes.MANY):
            if not rest:
                return Argument(name=name, words=(word,), complete=False)
            values.append(rest.pop())
        elif takes is Takes.MAYBE and rest and not _looks_like_option(rest[-1]):
            values.append(rest.pop())
        while takes in (Takes.MANY, Takes.ANY) and rest and not _looks_like_option(rest[-1]):
            values.append(rest.pop())
        return Argument(name=name, values=tuple(values), words=(word, *values))

    def _attached(self, word: str, rest: list[str]) -> Argument:
        short = self._options.get(word[:2]) if word[1] != "-" else None
        if short is not None:
            name, takes = short
            if takes is not Takes.NOTHING:
                return Argument(name=name, values=(word[2:],), words=(word,))
            rest.append("-" + word[2:])
            return Argument(name=name, words=(word[:2],))
        flag, equals, value = word.partition("=")
        long = self._option(flag)
        if equals and long is not None and long[1] is not Takes.NOTHING:
            return Argument(name=long[0], values=(value,), words=(word,))
        return Argument(name=flag, words=(word,), known=False)


def _looks_like_option(word: str) -> bool:
    return len(word) > 1 and word[0] == "-"


def kept(grammar: Grammar, words: Sequence[str], without: Collection[str]) -> list[str]:
    """Return the words of all options but `without`, and no operand: a prompt must not be sent again.

    A word after an unknown option is its value or a prompt; a prompt must not be sent, and a flag without its value
    would not start, so both go. Alone or with `=` an unknown option can only be itself, and stays.
    """
    arguments = list(grammar.parse(words))
    result: list[str] = []
    for at, argument in enumerate(arguments):
        if argument.known:
            keep = argument.name is not None and argument.name not in without and argument.complete
        else:
            followed = at + 1 < len(arguments) and arguments[at + 1].name is None
            keep = "=" in argument.words[0] or not followed
        if keep:
            result.extend(argument.words)
    return result


def operands(grammar: Grammar, words: Sequence[str]) -> list[str]:
    """Return the words that are no options and no values of options, as far as that is known."""
    return [argument.values[0] for argument in grammar.parse(words) if argument.name is None]
