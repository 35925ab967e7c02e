"""How the scripts behind imported manifests bring agents back, and the log one of them leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from perdure.compat.files import write_export
from perdure.compat.listing import shown_panes
from perdure.compat.tmux_persist import CLAUDE
from perdure.compat.tmux_state import HERMES
from perdure.host.users import run_as
from perdure.model.plan import Action, Outcome, Result
from perdure.model.process import Command
from perdure.model.snapshot import Snapshot
from perdure.model.user import User

STATE, PERSIST = "tmux-state", "tmux-persist"


def imported_commands(snapshot: Snapshot, persist_flags: Sequence[str] = ()) -> dict[str, Command]:
    """Return by pane what its script would start, nothing for a snapshot that was not imported from one.

    `persist_flags` are those the user wants for agents of tmux-persist; the script's own choice is to skip every
    permission, which nobody gets without asking for it.
    """
    if snapshot.origin == STATE:
        return dict(_hermes(snapshot))
    if snapshot.origin == PERSIST:
        return dict(_claude(snapshot, persist_flags))
    return {}


def _hermes(snapshot: Snapshot) -> Iterator[tuple[str, Command]]:
    for pane in snapshot.topology.panes:
        identity = pane.identity
        if identity is None or identity.agent != HERMES:
            continue
        if identity.conversation:
            how = ("--resume", identity.conversation)
        else:
            how = ("--profile", identity.profile or "default")
        yield pane.id, Command(argv=(HERMES, "chat", *how), cwd=pane.cwd)


def _claude(snapshot: Snapshot, flags: Sequence[str]) -> Iterator[tuple[str, Command]]:
    for shown in shown_panes(snapshot.topology):
        identity = shown.pane.identity
        if identity is not None and identity.agent == CLAUDE and identity.conversation:
            argv = (CLAUDE, *flags, "--resume", identity.conversation, "--name", shown.session.name)
            yield shown.pane.id, Command(argv=argv, cwd=shown.pane.cwd)


def resume_log(snapshot: Snapshot, outcomes: Sequence[Outcome], now: datetime) -> Mapping[str, object] | None:
    """Return what `tmux-resume.sh` would log of this restore, None when the manifest is not one of its own."""
    if snapshot.origin != STATE:
        return None
    agents = [outcome for outcome in outcomes if outcome.step.agent == HERMES]
    started = (Action.RESUME, Action.START)
    restored = [each for each in agents if each.step.action in started and each.result is not Result.FAILED]
    return {
        "resumed_at": now.isoformat(),
        "manifest_age": _age(snapshot.taken_at, now),
        "restored": len(restored),
        "skipped": sum(1 for each in agents if each.result is Result.SKIPPED),
    }


def write_resume_log(user: User, log: Mapping[str, object]) -> None:
    """Put the log where the script keeps it, as the user it belongs to."""

    def write() -> bytes:
        write_export(os.path.join(user.home, ".timmy", "tmux-resume.log"), json.dumps(log, indent=2).encode())
        return b""

    if user.uid == os.geteuid():
        write()
    else:
        run_as(user, write)


def _age(taken_at: datetime, now: datetime) -> str:
    minutes = int((now - taken_at).total_seconds() / 60)
    return f"{minutes}m ago" if minutes < 60 else f"{minutes // 60}h {minutes % 60}m ago"
