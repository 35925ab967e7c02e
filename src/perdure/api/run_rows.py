"""A run as it is told: the fields of `perdure ls --json`, and what only the daemon knows; secrets aside."""

from __future__ import annotations

from datetime import datetime

from msgspec import structs

from perdure.live.meant import shown_in
from perdure.live.standing import Standing, standing_of
from perdure.model.agent_row import agent_row
from perdure.model.run import Run
from perdure.model.secrets import redact_text


class RunRow(Standing, frozen=True, kw_only=True):
    """One run. What is not known is null."""

    #: The same as `run`.
    id: str
    host: str
    user: str
    socket: str
    #: `SESSION:WINDOW.PANE`, as a person names it.
    target: str
    session: str
    window: int
    window_name: str
    pane: int
    pane_id: str
    #: The process that was started in the pane.
    pid: int | None
    cwd: str
    command: str
    title: str
    #: A word for the very program and conversation that are told of here, to be handed back with what is done to them.
    who: str
    agent: str | None
    conversation: str | None
    certain: bool | None
    evidence: str | None
    profile: str | None
    prompted: bool | None
    conversation_title: str | None
    parent: str | None
    began_at: datetime | None
    last_activity_at: datetime | None
    agent_version: str | None
    model: str | None
    provider: str | None
    context_used: int | None
    context_limit: int | None
    context_pct: int | None
    task: str | None
    transcript: str | None
    branch: str | None
    #: When the state was last seen to be so; null: it is only remembered.
    observed_at: datetime | None
    created_at: datetime
    seen_at: datetime | None
    #: Clients of tmux that look at its session.
    attached: int
    #: It was there when the daemon last ran, and has not been seen since.
    stale: bool
    exit_status: int | None
    exit_signal: int | None
    #: When its pane was gone, or it was let go of.
    ended_at: datetime | None
    #: It was let go of: its pane was left as it was, and is not followed any more.
    detached: bool


def run_row(run: Run) -> RunRow:
    """Return a run for those who ask."""
    place, tenant = run.place, run.tenant
    return RunRow(
        **structs.asdict(standing_of(run)),
        **agent_row(tenant, run.details if tenant else None, shown_in(run)),
        id=run.id,
        host=run.server.host,
        user=run.server.user,
        socket=run.server.socket,
        target=place.target,
        session=place.session,
        window=place.window,
        window_name=place.window_name,
        pane=place.pane,
        pane_id=run.pane,
        pid=run.first.pid if run.first else None,
        cwd=run.cwd,
        command=run.command,
        title=redact_text(run.title),
        agent=tenant.agent if tenant else None,
        observed_at=run.status.observed_at,
        created_at=run.created_at,
        seen_at=run.seen_at,
        attached=run.attached,
        stale=run.stale,
        exit_status=run.exit_status,
        exit_signal=run.exit_signal,
        ended_at=run.ended_at,
        detached=run.detached,
    )


class RunRows:
    """Rows that were made before: most runs are the same from one look to the next, and what is redacted takes its time."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Run, RunRow]] = {}

    def of(self, run: Run) -> RunRow:
        """Return a run for those who ask."""
        made = self._made.get(run.id)
        if made is not None and made[0] is run:
            return made[1]
        if len(self._made) >= _MOST_ROWS:
            self._made.clear()
        row = run_row(run)
        self._made[run.id] = run, row
        return row


#: How many rows are kept.
_MOST_ROWS = 4096
