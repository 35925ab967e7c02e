"""Which program a process is, through the interpreters and wrapper scripts that hide it."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import basename

from msgspec import Struct

from perdure.model.process import Process

_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_RUNNERS = _SHELLS | {"node", "nodejs", "bun", "deno", "python", "python3"}


class Program(Struct, frozen=True, kw_only=True):
    """How an agent's own files are called."""

    #: Base names of the binary and of the scripts that start it.
    names: frozenset[str]
    #: Parts of a path that only its files have.
    packages: tuple[str, ...] = ()
    #: Base names of scripts that mean it only within `packages`.
    scripts: frozenset[str] = frozenset()
    #: `names` mean it only within `packages`: they are words anybody might call a program.
    common: bool = False
    #: Further names that do so only within `packages`, or before one of its scripts.
    shared: frozenset[str] = frozenset()

    @property
    def programs(self) -> frozenset[str]:
        """Every base name a process of it may go by."""
        return self.names | self.scripts | self.shared


def locate(program: Program, process: Process) -> tuple[float, int]:
    """Return how surely a process runs this program, 0 for no, and how many words of argv come before its options."""
    score, head = head_of(program, process.argv)
    if program.common and not score and any(package in (process.exe or "") for package in program.packages):
        return 1.0, head
    if score or program.common:
        return score, head
    exe = process.exe or ""
    if basename(exe) in program.names or any(package in exe for package in program.packages):
        return 0.8, head
    return (0.5, head) if process.comm in program.names and not is_runner(process.argv) else (0.0, head)


def head_of(program: Program, argv: Sequence[str]) -> tuple[float, int]:
    """Return the same for a command line alone."""
    if not argv:
        return 0.0, 0
    if _is(program, argv[0]):
        return 1.0, 1
    if not is_runner(argv):
        return (1.0 if undisguised(program, argv) != tuple(argv) else 0.0), 1
    at = script_at(argv)
    if not at:
        return 0.0, 1
    script = argv[at]
    if argv[at - 1] == "-m" and script.partition(".")[0] in program.names and not program.common:
        return 0.6, at + 1
    if _is_script(program, script):
        return 0.9, at + 1
    return (0.6, at + 1) if _is(program, script) else (0.0, 1)


def undisguised(program: Program, argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command line as it was typed, when a launcher put its own name before its interpreter's words.

    `exec -a agent node --option /package/main.js ARGUMENTS` leaves `agent --option /package/main.js ARGUMENTS`; started
    again that would give the program its own script for an argument.
    """
    script = next((at for at, word in enumerate(argv) if at and not word.startswith("-")), 0)
    if basename(argv[0] if argv else "") not in program.names | program.shared or not script:
        return tuple(argv)
    if not _is_script(program, argv[script]):
        return tuple(argv)
    return (argv[0], *argv[script + 1 :])


def _is_script(program: Program, path: str) -> bool:
    return basename(path) in program.scripts and any(package in path for package in program.packages)


def _is(program: Program, path: str) -> bool:
    name = basename(path)
    if name in program.names and not program.common:
        return True
    return name in program.names | program.shared and any(package in path for package in program.packages)


def is_runner(argv: Sequence[str]) -> bool:
    """Return whether a command line is an interpreter's."""
    name = basename(argv[0]) if argv else ""
    return name in _RUNNERS or name.rstrip("0123456789.") in ("node", "python")


def is_shell(argv: Sequence[str]) -> bool:
    """Return whether a command line is a shell's, which runs programs and is none of them."""
    return bool(argv) and basename(argv[0]) in _SHELLS


def script_at(argv: Sequence[str]) -> int:
    """Return where in an interpreter's command line its script or module is, 0 when it runs none."""
    shell = is_shell(argv)
    for at, word in enumerate(argv[1:], 1):
        if word == "-m" and not shell:
            return at + 1 if at + 1 < len(argv) else 0
        if not word.startswith("-") and word != "run":
            return at
        # `sh -c` and `node -e` are given code, not a script; `python -u` and the like are harmless.
        if not word.startswith("--") and word != "run" and not _is_harmless(word, shell):
            return 0
    return 0


def _is_harmless(word: str, shell: bool) -> bool:
    return "c" not in word if shell else word in ("-u", "-I", "-B", "-s", "-E", "-O")
