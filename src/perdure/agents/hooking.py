"""What it takes to let an agent record its own conversation: which of its files, what goes into them, and the line it runs.

Pure data and text. Who reads and writes the files is `perdure.hooks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from os.path import join

from msgspec import Struct

#: In whatever we put into a file of somebody else's: by it we know our own again. `made` counts what had to be made
#: around it and goes with it, `sum` tells whether it was edited since; both are filled in when it is put there.
MARK = "perdure-hook/1 made=0 sum=00000000"


class Format(StrEnum):
    """How a file is written."""

    JSON = "json"
    YAML = "yaml"
    TOML = "toml"
    #: A whole file of ours.
    OWN = "own"


class Entry(Struct, frozen=True, kw_only=True):
    """Something to be appended to a list in a file of nested objects. One of its texts holds `MARK`."""

    #: The names that lead to the list.
    path: tuple[str, ...]
    value: Mapping[str, object]


class Setting(Struct, frozen=True, kw_only=True):
    """A list of words to be set in a table of a TOML file, unless its owner has set it to something else."""

    table: str
    key: str
    value: tuple[str, ...]
    #: The word that matters: an owner's own list that has it will do.
    needed: str


class HookFile(Struct, frozen=True, kw_only=True):
    """One file and what belongs into it."""

    #: From the agent's config home.
    path: str
    format: Format
    entries: tuple[Entry, ...] = ()
    setting: Setting | None = None
    text: str = ""


class HookFacts(Struct, frozen=True, kw_only=True):
    """How one agent is hooked."""

    #: Where it keeps its configuration: the first of these variables that is set, with what is below it there.
    variables: tuple[tuple[str, str], ...]
    #: Else this, below the user's home.
    usual_home: str
    #: Given the directory of the records, returns the files in the order in which they are to be written.
    files: Callable[[str], tuple[HookFile, ...]]
    #: Whether records arrive. An agent may also be made to show its conversation instead.
    records: bool = True
    #: What whoever installs it should know, in a sentence or two.
    note: str = ""

    def home(self, environ: Mapping[str, str], user_home: str) -> str:
        """Return the agent's config home; a relative one is meant from wherever the agent is started."""
        for variable, below in self.variables:
            if chosen := environ.get(variable):
                return join(chosen, below).rstrip("/") or "/"
        return join(user_home, self.usual_home)


def shell_quoted(text: str) -> str:
    """Return `text` as one word of a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def record_line(directory: str, event: str, *, pid: str = "$PPID", marked: bool = True) -> str:
    """Return the line that keeps what comes in as the newest record of `event` of process `pid`.

    It is run by any POSIX shell, says nothing, always succeeds, and reads all of its input, also when it cannot keep
    it: an agent that writes to somebody who has gone may die of it. The record's name is `<pid>-<event>`, inside tmux
    followed by `.<server's pid>.<pane's number>`; one of the same name is replaced, so there are never more than
    events. It appears whole or not at all. When the directory is gone, nothing is kept.
    """
    mark = f": {MARK}; " if marked else ""
    return (
        # Around all of it: a shell may have been told to say what it does.
        f"{{ {mark}d={shell_quoted(directory)}; p={pid}; s=${{TMUX-}}; s=${{s%,*}}; "
        # Variables somebody made up must not lose the record, nor give it a name that is not known again.
        "case $p in ''|*[!0-9]*) p=$PPID;; esac; "
        f"f=$p-{event}${{TMUX_PANE:+.${{s##*,}}.${{TMUX_PANE#%}}}}; "
        f"case $f in *[!0-9A-Za-z_.-]*) f=$p-{event};; esac; "
        'if [ -d "$d" ]; then umask 077; t=$d/.$f.$$; { cat >"$t" && mv -f "$t" "$d/$f"; } || { rm -f "$t"; cat; }; '
        "else cat; fi; exit 0; } >/dev/null 2>&1"
    )


#: What Claude Code calls the events that say which conversation a process is in and whether it waits for somebody, and
#: those who took them over from it. Events around tools are not asked for: there are many, and they carry whole files.
COMMON_EVENTS = ("SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "Stop", "SessionEnd")


def settings_file(
    path: str, events: Sequence[str], pid: str = "$PPID", more: Mapping[str, object] | None = None
) -> Callable[[str], tuple[HookFile, ...]]:
    """Return the plan for a settings file in which each event has a list of groups of commands."""

    def files(directory: str) -> tuple[HookFile, ...]:
        entries = (
            Entry(
                path=("hooks", event),
                value={
                    "hooks": [{"type": "command", **(more or {}), "command": record_line(directory, event, pid=pid)}]
                },
            )
            for event in events
        )
        return (HookFile(path=path, format=Format.JSON, entries=tuple(entries)),)

    return files
