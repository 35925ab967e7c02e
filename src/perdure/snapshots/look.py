"""capture -> identify, for every server that was asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cache, partial

import msgspec
from msgspec import Struct

from perdure.agents import roster
from perdure.errors import PerdureError
from perdure.host.processes import Entry, ProcessTable, is_alive, read_processes
from perdure.host.users import run_as, user_by_uid
from perdure.model.config import Config
from perdure.model.decoding import decoder_of
from perdure.model.digest import digest_of
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture, Miss, Missed, Snapshot
from perdure.model.topology import PaneDetails
from perdure.model.user import User
from perdure.ports import HostView
from perdure.snapshots.ask import Question
from perdure.snapshots.capture import Memory, Reading, locate, receive, revisit, with_panes
from perdure.snapshots.ending import as_before
from perdure.snapshots.identify import Earlier, identify
from perdure.snapshots.kept import Journalled, with_kept
from perdure.snapshots.remember import Held, held_elsewhere
from perdure.snapshots.scrollback import tidy, unchanged_panes, wanted_panes


class Looked(Struct, frozen=True, kw_only=True):
    """A capture with everyone in it identified, and the scrollback it refers to, by digest; None: not looked at."""

    capture: Capture
    scrollback: Mapping[str, bytes] | None


class Surroundings(Struct, frozen=True, kw_only=True):
    """What a look depends on besides the servers themselves."""

    config: Config
    host: str
    me: User
    #: The read-only view of a user's files.
    view_of: Callable[[User], HostView]
    earlier: Earlier
    #: The last snapshots of a user's servers other than these.
    others: Callable[[int, Collection[Server]], Sequence[Snapshot]] = lambda uid, servers: ()
    #: What restores have kept of panes.
    journalled: Journalled = lambda restore, pane: None


def look(
    questions: Sequence[Question],
    around: Surroundings,
    now: datetime,
    *,
    scrollback: bool = False,
    memory: Memory | None = None,
) -> list[Looked | Missed]:
    """Return what every server holds, in the order they were asked, each complete or missed with a reason."""
    timeout = around.config.tmux.timeout_seconds
    around = msgspec.structs.replace(around, earlier=cache(around.earlier))
    if not any(question.client for question in questions):
        missed = receive(questions, host=around.host, now=now, timeout=timeout)
        return [each for each in missed if isinstance(each, Missed)]
    # Read while tmux is at work. What starts in the next moment is found by the next look.
    table = _processes(around.config)
    table.prefetch()
    received = receive(questions, host=around.host, now=now, timeout=timeout, memory=memory)
    received = _without_other_names(received)
    readings = [each for each in received if isinstance(each, Reading)]
    before = [table.entry(reading.survey.process.pid) for reading in readings]
    looked = _deepen(readings, table, around, scrollback=scrollback, memory=memory)
    looked = _who(looked, around)
    answers = iter([_still_there(each, entry) for each, entry in zip(looked, before, strict=True)])
    return [next(answers) if isinstance(each, Reading) else each for each in received]


def _processes(config: Config) -> ProcessTable:
    known, named = roster(config.agents), frozenset(config.restore.environment)
    if not named:
        return read_processes(known.environment)
    return read_processes(
        known.environment,
        lambda comm, exe, argv, foreground: named if known.replays(comm, exe, argv, foreground) else frozenset(),
    )


def _without_other_names(received: Sequence[Reading | Missed]) -> list[Reading | Missed]:
    """Keep one of several sockets that lead to the same process: its panes must not contest their own conversations."""
    first: dict[ServerProcess, str] = {}
    result: list[Reading | Missed] = []
    for each in received:
        if isinstance(each, Reading):
            known = first.setdefault(each.survey.process, each.server.socket)
            if known != each.server.socket:
                message = f"{each.server.socket} is another name of the server on {known}."
                result.append(Missed(server=each.server, reason=Miss.NO_SERVER, message=message))
                continue
        result.append(each)
    return result


def _deepen(
    readings: Sequence[Reading], table: ProcessTable, around: Surroundings, *, scrollback: bool, memory: Memory | None
) -> list[Looked | Missed]:
    """Add the processes of every pane, the options of new ids, and the scrollback."""
    config = around.config.scrollback
    readings = [msgspec.structs.replace(each, capture=_located(each.capture, table, around)) for each in readings]
    shown = [_shown(each.capture, around) if scrollback else _Shown(wanted=(), known={}) for each in readings]
    answers = revisit(
        [(reading, each.to_read) for reading, each in zip(readings, shown, strict=True)],
        lines=config.lines,
        timeout=around.config.tmux.timeout_seconds,
        memory=memory,
    )
    looked: list[Looked | Missed] = []
    for reading, each, answer in zip(readings, shown, answers, strict=True):
        if isinstance(answer, Missed):
            looked.append(answer)
            continue
        learned, texts = answer
        capture = reading.capture if learned is reading else _located(learned.capture, table, around)
        looked.append(each.fill(capture, texts) if scrollback else Looked(capture=capture, scrollback=None))
    return looked


def _located(capture: Capture, table: ProcessTable, around: Surroundings) -> Capture:
    earlier = partial(around.earlier, capture.server)
    return locate(capture, lambda pid, tty: as_before(table.tree(pid, tty), earlier))


class _Shown(Struct, frozen=True, kw_only=True):
    """Which panes' scrollback is kept, and what of it is known already."""

    wanted: Sequence[str]
    known: Mapping[str, PaneDetails]

    @property
    def to_read(self) -> list[str]:
        return [pane for pane in self.wanted if pane not in self.known]

    def fill(self, capture: Capture, texts: Mapping[str, bytes]) -> Looked:
        """Return the capture with the scrollback that was read and that was known."""
        kept: dict[str, bytes] = {}
        details = dict(capture.details.panes)
        for pane in self.wanted:
            if pane in self.known:
                digest, read_at = self.known[pane].scrollback, self.known[pane].scrollback_at
            else:
                text = tidy(texts.get(pane, b""))
                digest, read_at = digest_of(text) if text else None, capture.taken_at
                kept |= {digest: text} if digest else {}
            details[pane] = msgspec.structs.replace(details[pane], scrollback=digest, scrollback_at=read_at)
        return Looked(capture=with_panes(capture, capture.topology.panes, details), scrollback=kept)


def _shown(capture: Capture, around: Surroundings) -> _Shown:
    wanted = wanted_panes(capture.topology, around.config.scrollback)
    known = unchanged_panes(capture, around.earlier(capture.server)) if wanted else {}
    return _Shown(wanted=wanted, known=known)


def _who(looked: Sequence[Looked | Missed], around: Surroundings) -> list[Looked | Missed]:
    """Identify all captures, those of each user together and as that user; what is kept for their panes is theirs too."""
    result = list(looked)
    by_user: dict[int, list[int]] = {}
    for place, each in enumerate(looked):
        if isinstance(each, Looked):
            by_user.setdefault(each.capture.server.uid, []).append(place)
    for uid, places in by_user.items():
        captures = [each.capture for place in places if isinstance(each := looked[place], Looked)]
        try:
            identified = _identify_as(uid, captures, around)
            elsewhere = partial(_elsewhere, uid, captures, around)
            identified = with_kept(identified, around.earlier, around.journalled, elsewhere)
        except PerdureError as error:
            # Without its agents a capture must not follow one that had them; nor is it the others' trouble.
            for place, capture in zip(places, captures, strict=True):
                result[place] = Missed(server=capture.server, reason=Miss.INCOMPLETE, message=error.message)
            continue
        for place, capture in zip(places, identified, strict=True):
            result[place] = msgspec.structs.replace(looked[place], capture=capture)
    return result


def _elsewhere(uid: int, captures: Sequence[Capture], around: Surroundings) -> list[Held]:
    """What a user's panes hold that are not in these captures."""
    return held_elsewhere(around.others(uid, [capture.server for capture in captures]), is_alive)


def _identify_as(uid: int, captures: Sequence[Capture], around: Surroundings) -> list[Capture]:
    elsewhere = partial(_elsewhere, uid, captures, around)
    known = roster(around.config.agents)
    if uid == around.me.uid:
        return identify(captures, around.view_of(around.me), around.earlier, elsewhere, known)
    user = user_by_uid(uid) or User(str(uid), uid, uid, "/")
    # A database connection does not survive a fork: what the child may need of it is read before.
    before = {capture.server.key: around.earlier(capture.server) for capture in captures}
    held = elsewhere()
    view = around.view_of(user)
    answer = run_as(
        user,
        lambda: msgspec.json.encode(
            identify(captures, view, lambda server: before.get(server.key), lambda: held, known)
        ),
    )
    return decoder_of(list[Capture]).decode(answer)


def _still_there(looked: Looked | Missed, before: Entry | None) -> Looked | Missed:
    """Discard a capture whose server ended while it was read.

    Agents drop their registries within half a second of losing their terminal: a capture of a dying server may
    show agents whose conversations can no longer be told, and must not take the place of one that could.
    """
    if isinstance(looked, Missed) or before is None or is_alive(before.pid, before.start_ticks):
        return looked
    server = looked.capture.server
    message = f"The server on {server.socket} ended while it was read."
    return Missed(server=server, reason=Miss.INCOMPLETE, message=message)
