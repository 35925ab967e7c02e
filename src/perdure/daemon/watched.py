"""Which paths and processes are to be watched for what is known now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perdure.daemon.known_servers import Known
from perdure.daemon.seeing import Tenant
from perdure.daemon.stimuli import Key, What
from perdure.daemon.world import World
from perdure.model.run import Program, Run

#: So many panes are told of by the ends of their first processes, each for a descriptor; of the others by outlines.
MOST_ENDS = 400


def paths_of(
    world: World, runs: Iterable[Run], ttys: Mapping[str, str], tenants: Mapping[str, Tenant]
) -> dict[Key, str]:
    """Return what changes when terminals, sockets, jobs and hooks' records come and go, panes print and agents go on."""
    paths = {Key(What.TERMINALS): "/dev/pts", Key(What.JOBS): world.jobs.directory}
    paths |= {Key(What.SOCKETS, directory): directory for directory in world.socket_dirs()}
    paths |= {Key(What.SPOOL, directory): directory for directory in world.spools()}
    for run in runs:
        if run.id in ttys and not run.stale:
            paths[Key(What.PANE, run.id)] = ttys[run.id]
        tenant = tenants.get(run.id)
        for number, path in enumerate(tenant.paths if tenant is not None else ()):
            paths[Key(What.AGENT, f"{run.id}/{number}")] = path
    return paths


class Programs:
    """The processes whose ends are waited for: servers, agents, jobs, and what panes were begun with."""

    def __init__(self) -> None:
        self._made_from: list[object] = []
        self._found: dict[Key, Program] = {}

    def of(
        self, servers: Mapping[str, Known], runs: Iterable[Run], jobs: Mapping[Key, Program] | None = None
    ) -> dict[Key, Program]:
        """Return them; the very same mapping as before as long as they are the same."""
        there = [run for run in runs if not run.stale]
        made_from: list[object] = [(run.id, run.first, run.program) for run in there]
        made_from += [(key, known.program) for key, known in servers.items()]
        made_from.append(jobs)
        if made_from != self._made_from:
            self._made_from, self._found = made_from, _programs_of(servers, there) | dict(jobs or {})
        return self._found


def _programs_of(servers: Mapping[str, Known], runs: Iterable[Run]) -> dict[Key, Program]:
    found = {Key(What.SERVER, key): known.program for key, known in servers.items() if known.program}
    found |= {Key(What.AGENT, run.id): run.program for run in runs if run.program is not None}
    firsts = {Key(What.PANE, run.id): run.first for run in runs if run.first not in (None, run.program)}
    return found | dict(list(firsts.items())[:MOST_ENDS])
