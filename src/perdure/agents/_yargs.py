"""Command lines that are read by yargs, put the way `_options.Grammar` reads them.

What yargs does beyond the help it prints: `--approval-mode` is `--approvalMode` too; every flag takes the word after it
when that is `true` or `false`, and has a `--no-` twin that does not; `-r=ID` is `-r ID`.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Whether a flag followed by this word is on.
_SAID = {"true": True, "false": False}
_NO = "--no-"


def declared(*lines: str) -> tuple[str, ...]:
    """Return declarations, written as for `Grammar`, with all that yargs takes for the same options."""
    found: list[str] = []
    for line in lines:
        names = [word.rstrip(",") for word in line.split() if word.startswith("-")]
        takes = line.split()[-1] if not line.split()[-1].startswith("-") else ""
        shorts = [name for name in names if not name.startswith("--")]
        longs = [name for name in names if name.startswith("--")]
        found.append(_line((*shorts, *_spellings(longs)), takes))
        if not takes:
            found.append(_line([_negated(name) for name in _spellings(longs)], ""))
    return tuple(found)


def plain(declarations: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the words with every flag said in one word, on or off, and what is attached to a letter as its own word.

    `declarations` are those of `declared`.
    """
    flags = {name for line in declarations if line.split()[-1].startswith("-") for name in line.split(", ")}
    flags -= {name for name in flags if name.startswith(_NO)}
    rest = [*reversed(words)]
    found: list[str] = []
    while rest:
        word = rest.pop()
        if word == "--":
            return [*found, word, *reversed(rest)]
        name, equals, value = word.partition("=")
        short = len(name) == 2 and name[0] == "-"
        if equals and (short or (name in flags and value in _SAID)):
            rest.append(value)
        else:
            name = word
        on = _SAID[rest.pop()] if name in flags and rest and rest[-1] in _SAID else True
        found.append(name if on else _negated(_long(declarations, name)))
    return found


def _line(names: Sequence[str], takes: str) -> str:
    return f"{', '.join(names)} {takes}".rstrip()


def _spellings(longs: Sequence[str]) -> list[str]:
    """The names in both spellings, the one of the help last."""
    camel = [_camel(name) for name in longs]
    return [name for name in camel if name not in longs] + list(longs)


def _camel(name: str) -> str:
    first, *more = name[2:].split("-")
    return "--" + first + "".join(part[:1].upper() + part[1:] for part in more)


def _negated(name: str) -> str:
    return _NO + name[2:]


def _long(declarations: Sequence[str], name: str) -> str:
    """The name the help prints for a flag."""
    for line in declarations:
        names = line.split(", ")
        if name in names:
            return names[-1]
    return name
