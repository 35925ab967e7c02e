"""The version-1 `tmux-state.json` manifest, written.

The fields, their order and their types are those of `tmux-state.sh`. Where that script guessed from words on
the screen, this says what is known, and null where nothing is.
"""

from __future__ import annotations

from datetime import UTC, datetime

from perdure.compat.listing import Shown, sessions_by_name, shown_panes
from perdure.model.identity import AgentDetails, Identity
from perdure.model.secrets import redact_text
from perdure.model.snapshot import Snapshot
from perdure.model.text import encode
from perdure.model.topology import Details, PaneDetails, Session, SessionDetails

#: The agent whose panes the manifest's readers start again.
HERMES = "hermes"

_LONGEST_TASK = 200
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def to_manifest(snapshot: Snapshot, *, hostname: str) -> dict[str, object]:
    """Return the manifest of a snapshot, dated when its state was last seen."""
    seen_at = snapshot.last_seen_at.astimezone(UTC)
    shown = shown_panes(snapshot.topology)
    panes = [_pane(one, snapshot.details) for one in shown]
    return {
        "version": 1,
        "timestamp": seen_at.isoformat(),
        "timestamp_epoch": int(seen_at.timestamp()),
        "hostname": hostname,
        "sessions": _sessions(snapshot),
        "panes": panes,
        "summary": _summary(snapshot, panes, _looked_at(shown, snapshot.details)),
    }


def to_json(manifest: dict[str, object]) -> str:
    """Return the manifest as the script writes it: indented by two, ASCII, no newline at the end."""
    import json

    return json.dumps(manifest, indent=2)


def _sessions(snapshot: Snapshot) -> list[dict[str, object]]:
    windows = dict.fromkeys((session.id for session in snapshot.topology.sessions), 0)
    for link in snapshot.topology.links:
        windows[link.session] += 1
    return [
        _session(session, windows[session.id], snapshot.details.sessions.get(session.id, SessionDetails()))
        for session in sessions_by_name(snapshot.topology)
    ]


def _session(session: Session, windows: int, details: SessionDetails) -> dict[str, object]:
    created = int(session.created_at.timestamp())
    return {
        "name": _plain(session.name),
        "windows": windows,
        "created_epoch": created,
        "created": datetime.fromtimestamp(created, tz=UTC).isoformat(),
        "attached": details.attached > 0,
        "group": _plain(session.group),
        "id": session.id,
    }


def _pane(shown: Shown, details: Details) -> dict[str, object]:
    pane = shown.pane
    live = details.panes.get(pane.id) or PaneDetails(title=pane.title)
    agent = live.agent or AgentDetails()
    return {
        "address": _address(shown),
        "pane_id": pane.id,
        "pid": pane.pid,
        "size": f"{pane.width}x{pane.height}",
        "active": pane.active,
        "command": _plain(pane.command),
        "title": _plain(redact_text(live.title)),
        "profile": _profile(pane.identity),
        "model": agent.model,
        "provider": agent.provider,
        "session_id": _resumable(pane.identity),
        "task": _task(agent.task),
        "context_pct": agent.context_pct,
        "is_hermes": _is_hermes(pane.identity),
    }


def _summary(snapshot: Snapshot, panes: list[dict[str, object]], primary: int | None) -> dict[str, object]:
    active = {} if primary is None else panes[primary]
    return {
        "total_sessions": len(snapshot.topology.sessions),
        "total_panes": len(panes),
        "hermes_panes": sum(1 for pane in panes if pane["is_hermes"]),
        "active_pane": active.get("address"),
        "active_model": active.get("model"),
        "active_provider": active.get("provider"),
    }


def _looked_at(shown: tuple[Shown, ...], details: Details) -> int | None:
    """Return which entry is the active pane of the session last used: an attached one before any other."""

    def use(number: int) -> tuple[bool, datetime]:
        session = details.sessions.get(shown[number].session.id, SessionDetails())
        return session.attached > 0, session.activity_at or _LONG_AGO

    candidates = [number for number, one in enumerate(shown) if one.link.active and one.pane.active]
    return max(candidates, key=use, default=None)


def _address(shown: Shown) -> str:
    return f"{_plain(shown.session.name)}:{shown.link.index}.{shown.pane.index}"


def _is_hermes(identity: Identity | None) -> bool:
    return identity is not None and identity.agent == HERMES


def _profile(identity: Identity | None) -> str | None:
    if identity is None:
        return None
    # Readers put this behind `--profile`, where null would become the word None.
    return identity.profile or ("default" if _is_hermes(identity) else None)


def _resumable(identity: Identity | None) -> str | None:
    if identity is None or not identity.certain or identity.prompted is False:
        return None
    return identity.conversation


def _task(task: str | None) -> str | None:
    return None if task is None else _plain(" ".join(redact_text(task).split()))[:_LONGEST_TASK]


def _plain(text: str) -> str:
    """Return the text as a person would read it; bytes that are no text become the replacement character."""
    return encode(text).decode(errors="replace")
