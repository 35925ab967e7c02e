"""Events as people get to see them, secrets aside. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.cli.render import local, printable
from perdure.live.event_row import shown_data
from perdure.model.event import Event, EventKind, StoredEvent

#: What of an event is said first, as it is; the rest follows with its names.
_FIRST: Mapping[EventKind, tuple[str, ...]] = {
    EventKind.RUN_CREATED: ("target", "agent"),
    EventKind.RUN_RETURNED: ("target", "agent"),
    EventKind.RUN_DELETED: ("target",),
    EventKind.IDENTITY_CHANGED: ("agent", "conversation"),
    EventKind.TITLE_CHANGED: ("title",),
    EventKind.SKILL_CHANGED: ("skill",),
    EventKind.THOUGHT: ("thought",),
    EventKind.SENT: ("result",),
    EventKind.RESTORING: ("restore",),
    EventKind.CHAT_OPENED: ("chat", "platform"),
    EventKind.CHAT_CLOSED: ("chat", "reason"),
    EventKind.CHAT_RESUMED: ("chat", "platform"),
    EventKind.CHAT_TITLED: ("chat", "title"),
    EventKind.CHAT_SAID: ("chat",),
    EventKind.CHAT_TAKEN_BACK: ("chat",),
    EventKind.CHAT_FORGOTTEN: ("chat",),
    EventKind.JOB_STARTED: ("job",),
    EventKind.JOB_ENDED: ("job", "status", "exit_code"),
    EventKind.JOB_OUTPUT: ("job", "output"),
    EventKind.JOB_NOTE: ("job", "note"),
}
#: Said by what stands before them.
_SAID = {EventKind.STATE_CHANGED: frozenset({"state", "reason", "from", "to", "thought"})}


def event_line(stored: StoredEvent) -> str:
    """Return an event for people, in one line."""
    event = stored.event
    about = event.run or "-"
    return printable(f"{stored.seq:>6}  {local(event.at)}  {about:<5}  {event.kind:<16}  {_words(event)}".rstrip())


def _words(event: Event) -> str:
    data = {name: value for name, value in shown_data(event).items() if value not in (None, "", [], {})}
    # Behind everything else: it is a sentence.
    sentence = data.pop("because", None)
    first = _FIRST.get(event.kind, ())
    words = [str(data[name]) for name in first if name in data]
    if event.kind is EventKind.STATE_CHANGED:
        words = [f"{data.get('from', '?')} -> {data.get('to', '?')}"]
    said = _SAID.get(event.kind, frozenset(first))
    words += [f"{name}={value}" for name, value in data.items() if name not in said]
    words += [str(sentence)] if sentence is not None else []
    if event.run is None and event.server is not None:
        words.append(f"server={event.server}")
    return " ".join(words)
