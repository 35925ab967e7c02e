"""Which processes are waited for."""

from __future__ import annotations

from perdure.daemon.known_servers import Known
from perdure.daemon.stimuli import Key, What
from perdure.daemon.watched import MOST_ENDS, Programs
from perdure.model.run import Program, Run
from perdure.model.user import User
from tests.builders import a_server
from tests.unit.live.events import a_run

SERVER = Program(pid=1, start_ticks=1)


def _servers() -> dict[str, Known]:
    known = Known(server=a_server(), owner=User("dev", 1000, 1000, "/home/dev"), program=SERVER)
    return {known.server.key: known}


def _runs(count: int) -> list[Run]:
    return [a_run(f"r{number}", first=Program(pid=100 + number, start_ticks=1)) for number in range(count)]


def test_servers_agents_and_what_panes_began_with_are_waited_for() -> None:
    shell, agent = Program(pid=10, start_ticks=1), Program(pid=11, start_ticks=1)
    alone = Program(pid=12, start_ticks=1)
    runs = [a_run("r1", first=shell, program=agent), a_run("r2", first=alone, program=alone), a_run("r3")]
    assert Programs().of(_servers(), runs) == {
        Key(What.SERVER, a_server().key): SERVER,
        Key(What.AGENT, "r1"): agent,
        Key(What.PANE, "r1"): shell,
        # An agent that is all there is in its pane is waited for once.
        Key(What.AGENT, "r2"): alone,
    }


def test_nobody_waits_for_what_is_only_remembered() -> None:
    assert not Programs().of({}, [a_run(first=SERVER, program=SERVER, stale=True)])


def test_as_long_as_they_are_the_same_it_is_the_very_same_mapping() -> None:
    programs, servers = Programs(), _servers()
    before = programs.of(servers, _runs(3))
    assert programs.of(servers, _runs(3)) is before
    assert programs.of(servers, _runs(4)) is not before


def test_so_many_panes_do_not_take_all_descriptors() -> None:
    found = Programs().of(_servers(), _runs(MOST_ENDS + 100))
    assert len(found) == MOST_ENDS + 1
