"""A complete reading of every server that answers, or the reason why there is none.

"No server", "did not answer", "nothing in it" and "not whole" are four different results. None of them says
anything about what was there before, so none of them may ever replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from perdure.model.process import Process
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture, Miss, Missed
from perdure.model.topology import Details, Pane, PaneDetails, Topology
from perdure.snapshots.ask import PANE, Question, ask, ask_again
from perdure.tmux import run
from perdure.tmux.assemble import assemble
from perdure.tmux.names import command_name
from perdure.tmux.parse import Garbled, Survey, read_revisit, read_survey

#: How often a server is asked when its answer does not hold together, e.g. because a pane ended meanwhile.
ATTEMPTS = 3


class Reading(Struct, frozen=True, kw_only=True):
    """A server's answer, whole, and what is known of the options set on its parts."""

    question: Question
    server: Server
    survey: Survey
    settings: Mapping[str, bytes]
    capture: Capture

    @property
    def unknown(self) -> tuple[str, ...]:
        """The sessions, windows and panes whose options were not read yet."""
        ids = [row.words[0] for row in self.survey.sessions]
        ids += [row.words[1] for row in (*self.survey.windows, *self.survey.panes)]
        return tuple(id for id in dict.fromkeys(ids) if id not in self.settings)

    def learn(self, settings: Mapping[str, bytes]) -> Reading:
        """Return the reading with more settings known."""
        return _reading(self.question, self.server, self.survey, {**self.settings, **settings}, self.capture.taken_at)


class Memory:
    """Options and environments read before, so that a daemon need not read them with every save.

    tmux tells nobody when an option is set, and reading them all costs more than the rest of a capture. So a
    reading is good for `lifetime`; new sessions, windows and panes are always read.
    """

    def __init__(self, lifetime: timedelta = timedelta(minutes=1)) -> None:
        self._lifetime = lifetime
        self._read: dict[str, tuple[datetime, ServerProcess, Mapping[str, bytes]]] = {}

    def is_fresh(self, socket: str, now: datetime) -> bool:
        """Say whether this server's settings were read recently enough."""
        found = self._read.get(socket)
        return found is not None and now - found[0] < self._lifetime

    def recall(self, socket: str, process: ServerProcess) -> Mapping[str, bytes]:
        """Return the raw settings by id, nothing when another process answers there now."""
        found = self._read.get(socket)
        return found[2] if found is not None and found[1] == process else {}

    def keep(self, socket: str, process: ServerProcess, settings: Mapping[str, bytes], now: datetime) -> None:
        """Remember a full reading."""
        self._read[socket] = (now, process, settings)

    def forget(self, socket: str) -> None:
        """Let go of a server that is gone."""
        self._read.pop(socket, None)

    def add(self, socket: str, settings: Mapping[str, bytes]) -> None:
        """Remember what was read of new ids, without making the rest any fresher."""
        if socket in self._read:
            at, process, known = self._read[socket]
            self._read[socket] = (at, process, {**known, **settings})


def receive(
    questions: Sequence[Question], *, host: str, now: datetime, timeout: float, memory: Memory | None = None
) -> list[Reading | Missed]:
    """Return what every server answered, in the order they were asked."""
    results: dict[int, Reading | Missed] = {}
    pending = dict(enumerate(questions))
    for left in reversed(range(ATTEMPTS)):
        run.gather([question.client for question in pending.values() if question.client])
        for place, question in pending.items():
            results[place] = _judge(question, host, now, memory, last=not left)
        again = [
            (place, question)
            for place, question in pending.items()
            if isinstance(missed := results[place], Missed) and missed.reason is Miss.INCOMPLETE
        ]
        if not left or not again:
            break
        pending = {place: ask(question.socket, question.owner, timeout=timeout) for place, question in again}
    return [results[place] for place in range(len(questions))]


def _judge(question: Question, host: str, now: datetime, memory: Memory | None, *, last: bool) -> Reading | Missed:
    server = Server(host=host, user=question.owner.name, uid=question.owner.uid, socket=question.socket)
    client = question.client
    if client is None:
        reason, message = question.refusal or ("unreachable", "The server was not asked.")
        return Missed(server=server, reason=Miss(reason), message=message)
    if client.status is None:
        return _missed(server, Miss.UNREACHABLE, "did not answer in time")
    if not client.answer.startswith(question.mark.encode()):
        return _no_answer(server, client.complaint)
    if client.complaint.startswith("no current target") and client.answer.count(b"\n") == 1:
        return _missed(server, Miss.EMPTY, _NOTHING)
    try:
        survey = read_survey(client.answer, question.mark, pane=PANE)
        if not survey.sessions:
            return _missed(server, Miss.EMPTY, _NOTHING)
        if client.complaint and not last:
            raise Garbled(client.complaint.splitlines()[0])
        settings = _settings(survey, question.socket, now, memory)
        return _reading(question, server, survey, settings, now)
    except Garbled as error:
        return _missed(server, Miss.INCOMPLETE, f"gave an answer that is not whole: {error}")


_NOTHING = "is running without a session"


def _reading(
    question: Question, server: Server, survey: Survey, settings: Mapping[str, bytes], now: datetime
) -> Reading:
    topology, details = assemble(survey, settings)
    capture = Capture(server=server, taken_at=now, topology=topology, details=details)
    return Reading(question=question, server=server, survey=survey, settings=settings, capture=capture)


def _settings(survey: Survey, socket: str, now: datetime, memory: Memory | None) -> Mapping[str, bytes]:
    if memory is None:
        return survey.settings
    if not survey.settings:
        return memory.recall(socket, survey.process)
    memory.keep(socket, survey.process, survey.settings, now)
    return survey.settings


def _no_answer(server: Server, complaint: str) -> Missed:
    gone = ("(No such file or directory)", "(Connection refused)")
    if complaint.startswith("no server running") or complaint.endswith(gone):
        return Missed(server=server, reason=Miss.NO_SERVER, message=f"No server runs on {server.socket}.")
    if "unknown flag" in complaint or "unknown command" in complaint or "usage:" in complaint:
        return _missed(server, Miss.UNREACHABLE, f"is older than tmux 3.2 ({complaint})")
    return _missed(server, Miss.UNREACHABLE, f"did not answer ({complaint or 'it hung up'})")


def _missed(server: Server, reason: Miss, what: str) -> Missed:
    return Missed(server=server, reason=reason, message=f"The server on {server.socket} {what}.")


def revisit(
    wanted: Sequence[tuple[Reading, list[str]]],
    *,
    lines: int,
    timeout: float,
    memory: Memory | None = None,
) -> list[tuple[Reading, Mapping[str, bytes]] | Missed]:
    """Ask once more where something is left to ask: options of new ids, and the scrollback of the panes named.

    A server that does not answer now, or is another one by now, was dying while it was read: that reading is
    not whole either.
    """
    again = {
        place: ask_again(reading.question, unknown=reading.unknown, panes=panes, lines=lines, timeout=timeout)
        for place, (reading, panes) in enumerate(wanted)
        if panes or reading.unknown
    }
    run.gather([question.client for question in again.values() if question.client])
    return [_revisited(reading, again.get(place), memory) for place, (reading, _) in enumerate(wanted)]


def _revisited(
    reading: Reading, question: Question | None, memory: Memory | None
) -> tuple[Reading, Mapping[str, bytes]] | Missed:
    if question is None or question.client is None:
        return reading, {}
    try:
        process, settings, scrollback = read_revisit(question.client.answer, question.mark)
    except Garbled as error:
        return _missed(reading.server, Miss.INCOMPLETE, f"stopped answering while it was read: {error}")
    if process != reading.survey.process:
        return _missed(reading.server, Miss.INCOMPLETE, "was replaced by another while it was read")
    if memory is not None:
        memory.add(reading.question.socket, settings)
    return (reading.learn(settings) if settings else reading), scrollback


def locate(capture: Capture, tree_of: Callable[[int, str], tuple[Process, ...]]) -> Capture:
    """Return the capture with the processes of each pane, and where its foreground program is.

    The same places tmux would look at: the leader of the terminal's foreground group, else the pane's own process.
    """
    panes, details = [], dict(capture.details.panes)
    for pane in capture.topology.panes:
        tree = () if pane.dead else tree_of(pane.pid, pane.tty)
        panes.append(_located(pane, tree))
        details[pane.id] = msgspec.structs.replace(details.get(pane.id, PaneDetails()), processes=tree)
    return with_panes(capture, panes, details)


def with_panes(capture: Capture, panes: Iterable[Pane], details: Mapping[str, PaneDetails]) -> Capture:
    """Return the capture with other panes and other details of panes."""
    topology: Topology = msgspec.structs.replace(capture.topology, panes=tuple(panes))
    kept: Details = msgspec.structs.replace(capture.details, panes=details)
    return msgspec.structs.replace(capture, topology=topology, details=kept)


def _located(pane: Pane, tree: Sequence[Process]) -> Pane:
    if not tree or pane.command:  # tmux was asked to look it up itself
        return pane
    leader = next((process for process in tree if process.foreground and process.pid == process.pgid), tree[0])
    cwd = leader.cwd or tree[0].cwd or ""
    word = leader.argv[0] if leader.argv else ""
    return msgspec.structs.replace(pane, cwd=cwd, command=command_name(word or pane.start_command))
