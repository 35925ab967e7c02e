"""What the demonstration puts up: some sessions as people leave them, with agents in every state that makes a difference."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from shutil import which

from msgspec import Struct

from perdure.demo.agent import NAME
from perdure.demo.machine import Machine
from perdure.errors import PerdureError
from perdure.host.waiting import wait_until

#: What may take how long on a slow machine.
PATIENCE = 30.0

_EARLIER = "Which colours does the header use?"
_LATER = "Make the footer stay where it is."


class Place(Struct, frozen=True, kw_only=True):
    """One pane: where it is, and what somebody types in its shell."""

    session: str
    window: str
    folder: str
    #: Nothing: a shell at its prompt.
    typed: str = ""
    #: How much is said then: a prompt and its answer are two, a prompt still being answered is one.
    turns: int = 0
    #: Prompts that are typed when that has been said.
    later: tuple[str, ...] = ()

    @property
    def is_agent(self) -> bool:
        """Whether an agent is put into it."""
        return self.typed.startswith(NAME)


def scene() -> tuple[Place, ...]:
    """Return the panes, those of one window and of one session side by side."""
    return (
        Place(
            session="api",
            window="agents",
            folder="api",
            typed=f"{NAME} --model large 'Why does the parser drop the last line?'",
            turns=2,
        ),
        # In the same directory: files and times alone could not tell the two apart.
        Place(
            session="api",
            window="agents",
            folder="api",
            typed=f"{NAME} 'Write a test for the empty file.'",
            turns=2,
        ),
        Place(session="api", window="log", folder="api", typed="tail -f server.log"),
        Place(session="api", window="shell", folder="api"),
        Place(
            session="web",
            window="agent",
            folder="web",
            typed=f"{NAME} '{_EARLIER}'",
            turns=2,
            later=("/new", _LATER),
        ),
        Place(session="docs", window="agent", folder="docs", typed=f"{NAME} --model small"),
        Place(session="docs", window="notes", folder="docs", typed=_viewer()),
        Place(
            session="night",
            window="agent",
            folder="night",
            typed=f"{NAME} --think 3600 'Rename the module everywhere.'",
            turns=1,
        ),
        Place(session="night", window="shell", folder="night"),
    )


def _viewer() -> str:
    """An editor or a pager, whichever this machine has."""
    found = next((name for name in ("less", "vim", "vi", "nano") if which(name)), None)
    return f"{found} notes.txt" if found else "tail -f notes.txt"


FILES: Mapping[str, str] = {
    "api/server.log": "12:00:01 listening\n12:00:02 ready\n",
    "docs/notes.txt": "".join(f"Note {number}\n" for number in range(1, 200)),
    # What a person's own configuration is: there before the crash and after it.
    ".tmux.conf": "set -g default-shell /bin/sh\nset -g status-right 'perdure demo'\n",
}


def put_up(machine: Machine, places: Sequence[Place]) -> None:
    """Make the sessions and wait until everything in them is as it should be."""
    for folder in {place.folder for place in places}:
        os.makedirs(os.path.join(machine.home, folder), exist_ok=True)
    for name, text in FILES.items():
        with open(os.path.join(machine.home, name), "w", encoding="utf-8") as file:
            file.write(text)
    panes = dict(zip(_make(machine, places), places, strict=True))
    for pane, place in panes.items():
        if place.typed:
            _type(machine, pane, place.typed)
    agents, turns = sum(place.is_agent for place in places), sum(place.turns for place in places)
    _await(lambda: (len(machine.running()), machine.turns()) == (agents, turns), "the agents did not answer")
    for pane, place in panes.items():
        for text in place.later:
            before = machine.running(), machine.turns()
            _type(machine, pane, text)
            _await(partial(_has_heard, machine, before), "an agent did not answer")
    _await(lambda: _runs(machine, panes), "the programs did not start")


def _make(machine: Machine, places: Sequence[Place]) -> list[str]:
    panes: list[str] = []
    before: Place | None = None
    for place in places:
        where = ["-P", "-F", "#{pane_id}", "-c", os.path.join(machine.home, place.folder)]
        if before is None or place.session != before.session:
            words = ["new-session", "-d", *where, "-s", place.session, "-n", place.window, "-x", "120", "-y", "36"]
        elif place.window != before.window:
            words = ["new-window", "-d", *where, "-t", f"={place.session}:", "-n", place.window]
        else:
            words = ["split-window", "-d", *where, "-t", panes[-1]]
        panes.append(machine.tmux(*words).strip())
        before = place
    return panes


def _type(machine: Machine, pane: str, text: str) -> None:
    machine.tmux("send-keys", "-t", pane, "-l", text)
    machine.tmux("send-keys", "-t", pane, "Enter")


def _has_heard(machine: Machine, before: tuple[frozenset[str], int]) -> bool:
    """Say whether an agent is in a new conversation since, or has written down and answered what it was told."""
    return machine.running() != before[0] or machine.turns() == before[1] + 2


def _runs(machine: Machine, panes: Mapping[str, Place]) -> bool:
    """Say whether every pane that has no agent runs what was typed there."""
    listed = machine.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_current_command}").splitlines()
    commands = {pane: command for pane, _, command in (line.partition(" ") for line in listed)}
    others = {pane: place.typed.split()[0] for pane, place in panes.items() if place.typed and not place.is_agent}
    return all(commands.get(pane) == program for pane, program in others.items())


def _await(condition: Callable[[], bool], why: str) -> None:
    if not wait_until(condition, PATIENCE):
        raise PerdureError(f"The scene could not be put up: {why} within {PATIENCE:.0f} s.")
