from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents import roster
from perdure.agents.generic import Generic
from perdure.model.config import Config
from perdure.model.identity import AgentDetails, Identity
from perdure.model.plan import Action, Plan, Step
from perdure.model.process import Command
from perdure.model.server import ServerProcess
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Link, Pane, Topology
from perdure.restore.plan import Holder, Living, Policy, plan, starts_an_agent
from tests.builders import a_capture, a_pane, a_process, a_program, a_snapshot, a_topology, an_identity, at
from tests.unit.restore.made import (
    NAMES,
    CarryingOut,
    World,
    a_session,
    a_snapshot_of,
    a_topology_of,
    begun_by,
    shape,
    topologies,
)

replace = msgspec.structs.replace


class Some(Generic):
    """An agent that resumes by its id, and starts as it was started."""

    name = "some"

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        words = ("--resume", identity.conversation or "") if identity.prompted is not False else ()
        return replace(launched, argv=(*launched.argv, *words))


class AtHome(Some):
    name = "homebody"
    same_directory = True


class Broken(Some):
    name = "broken"

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        raise ValueError(launched.argv[99])


AGENTS = {each.name: each for each in (Some(), AtHome(), Broken())}


def of(*panes: Pane, living: Living | None = None, policy: Policy | None = None, origin: str = "capture") -> list[Step]:
    """The steps for panes of one window."""
    numbered = [replace(pane, id=f"%{n}", index=n) for n, pane in enumerate(panes)]
    snapshot = replace(a_snapshot(a_capture(numbered)), origin=origin)
    return list(plan(snapshot, living or Living(), AGENTS, policy or Policy()).steps)


def an_agent(conversation: str | None = "c0ffee", agent: str = "some", **changes: object) -> Pane:
    return a_pane(identity=an_identity(agent, conversation, **changes), program=a_program(agent, "--fast"))


def key(conversation: str = "c0ffee", profile: str | None = None) -> tuple[str, str | None, str]:
    return ("some", profile, conversation)


def test_a_shell_is_a_shell_where_it_was() -> None:
    (step,) = of(a_pane(cwd="/home/dev/src"))
    assert (step.n, step.pane, step.target, step.action) == (1, "%0", "work:0.0", Action.SHELL)
    assert (step.argv, step.cwd, step.why) == (("bash",), "/home/dev/src", "")


@pytest.mark.parametrize(
    ("argv", "kept"),
    [(("-bash",), ()), (("fish", "-N"), ("fish", "-N")), (("bash", "-c", "x"), ()), (("vim",), ()), ((), ())],
)
def test_a_shell_somebody_chose_is_chosen_again(argv: tuple[str, ...], kept: tuple[str, ...]) -> None:
    snapshot = a_snapshot()
    pane = replace(snapshot.details.panes["%0"], processes=(a_process(argv=argv),))
    snapshot = replace(snapshot, details=replace(snapshot.details, panes={"%0": pane}))
    assert plan(snapshot, Living(), {}, Policy()).steps[0].argv == kept


# Agents


def test_an_agent_is_resumed_by_its_adapter_s_words_where_its_conversation_began() -> None:
    (step,) = of(an_agent(home="/home/dev/began"))
    assert step.action is Action.RESUME
    assert (step.agent, step.conversation) == ("some", "c0ffee")
    assert step.argv == ("some", "--fast", "--resume", "c0ffee")
    assert (step.cwd, step.asks, step.why) == ("/home/dev/began", False, "")
    assert starts_an_agent(step)


def test_when_an_agent_was_last_active_is_known() -> None:
    snapshot = a_snapshot(a_capture([an_agent()]))
    pane = replace(snapshot.details.panes["%0"], agent=AgentDetails(last_activity_at=at(-5)))
    snapshot = replace(snapshot, details=replace(snapshot.details, panes={"%0": pane}))
    assert plan(snapshot, Living(), AGENTS, Policy()).steps[0].active_at == at(-5)


def test_an_agent_in_no_known_conversation_is_not_started_empty() -> None:
    (step,) = of(an_agent(None, certain=False))
    assert step.action is Action.SHOW
    assert step.argv == ("some", "--fast")
    assert "not known" in step.why


def test_an_agent_that_was_never_prompted_starts_with_its_flags() -> None:
    first, second = of(an_agent("new", prompted=False), an_agent("b", prompted=False, certain=False))
    assert (first.action, first.argv, first.asks) == (Action.START, ("some", "--fast"), False)
    assert (second.action, second.asks) == (Action.START, False)


def test_a_guess_is_resumed_on_enter_only() -> None:
    (step,) = of(an_agent(certain=False))
    assert (step.action, step.asks) == (Action.RESUME, True)
    assert "c0ffee" in step.why
    assert not starts_an_agent(step)


def test_a_guess_of_an_import_is_what_the_import_said() -> None:
    (step,) = of(an_agent(certain=False), origin="tmux-state")
    assert (step.action, step.asks) == (Action.RESUME, False)


def test_lazily_every_agent_waits_for_enter() -> None:
    steps = of(an_agent("a"), an_agent("b", prompted=False), a_pane(), policy=Policy(lazy=True))
    assert [step.asks for step in steps] == [True, True, False]


@pytest.mark.parametrize("agent", ["unheard-of", "broken"])
def test_an_agent_nobody_can_resume_is_shown(agent: str) -> None:
    first, second = of(an_agent(agent=agent), an_agent("other"))
    assert first.action is Action.SHOW
    assert agent in first.why
    assert second.action is Action.RESUME


def test_a_conversation_that_is_lost_is_said_to_be() -> None:
    (step,) = of(an_agent(), living=Living(lost={"%0": "its transcript is gone"}))
    assert (step.action, step.why, step.conversation) == (Action.SHOW, "its transcript is gone", "c0ffee")


@pytest.mark.parametrize("prompted", [True, None, False])
def test_a_conversation_in_use_anywhere_is_not_resumed(prompted: bool | None) -> None:
    held = {key(): Holder(place="process 7, outside tmux")}
    (step,) = of(an_agent(prompted=prompted), living=Living(held=held))
    assert step.action is Action.SHOW
    assert "process 7" in step.why


def test_a_fresh_start_under_no_id_is_in_nobody_s_way() -> None:
    held = {key(): Holder(place="process 7")}
    (step,) = of(an_agent(prompted=False, taken=True), living=Living(held=held))
    assert step.action is Action.START


def test_the_same_id_of_another_profile_is_another_conversation() -> None:
    held = {key(profile="/home/dev/copy"): Holder(place="process 7")}
    (step,) = of(an_agent(), living=Living(held=held))
    assert step.action is Action.RESUME


@pytest.mark.parametrize("prompted", [None, False])
def test_two_panes_never_get_one_conversation(prompted: bool | None) -> None:
    first, second = of(an_agent(prompted=prompted), an_agent(prompted=prompted))
    assert first.action in (Action.RESUME, Action.START)
    assert (second.action, second.why) == (Action.SHOW, "c0ffee goes to pane %0")


def test_a_conversation_goes_to_who_is_certain_of_it() -> None:
    first, second = of(an_agent(certain=False), an_agent())
    assert (first.action, second.action) == (Action.SHOW, Action.RESUME)
    assert not second.asks


def test_a_conversation_goes_to_who_can_have_it() -> None:
    living = Living(lost={"%0": "gone"})
    first, second = of(an_agent(), an_agent(), living=living)
    assert (first.action, second.action) == (Action.SHOW, Action.RESUME)


@pytest.mark.parametrize("argv", [(), ("x",)])
def test_no_real_agent_chokes_on_what_was_not_captured(argv: tuple[str, ...]) -> None:
    known = {each.name: each for each in roster(Config().agents).everyone()}
    for name in known:
        program = a_program(*argv) if argv else None
        pane = a_pane(identity=an_identity(name, "0b8a3c1e-1c1a-4a5e-9d4c-000000000001"), program=program)
        (step,) = plan(a_snapshot(a_capture([pane])), Living(), known, Policy()).steps
        assert step.action in (Action.RESUME, Action.SHOW), name
        assert step.argv or step.action is Action.SHOW, name


# Directories


GONE = Living(directories={"/home/dev/gone/x": "/home/dev", "/home/dev": "/home/dev"})


def test_where_a_directory_is_gone_its_nearest_parent_is_taken_and_said() -> None:
    shell, agent, program, dead = of(
        a_pane(cwd="/home/dev/gone/x"),
        an_agent(home="/home/dev/gone/x"),
        a_pane(program=a_program("vim", cwd="/home/dev/gone/x")),
        a_pane(dead=True, cwd="", start_path="/home/dev/gone/x"),
        living=GONE,
        policy=Policy(programs=None),
    )
    for step in (shell, agent, program, dead):
        assert step.cwd == "/home/dev"
        assert step.why == "/home/dev/gone/x is gone, so it is in /home/dev"
    assert agent.action is Action.RESUME


def test_an_agent_that_needs_its_directory_is_not_started_in_another() -> None:
    (step,) = of(an_agent(agent="homebody", home="/home/dev/gone/x"), living=GONE)
    assert (step.action, step.cwd) == (Action.SHOW, "/home/dev")
    assert "homebody finds a conversation only where it was begun" in step.why
    (step,) = of(an_agent(agent="homebody"), living=GONE)
    assert step.action is Action.RESUME


# Programs and dead panes


@pytest.mark.parametrize(
    ("programs", "action"),
    [
        (frozenset({"vim"}), Action.RUN),
        (None, Action.RUN),
        (frozenset(), Action.SHOW),
        (frozenset({"vi"}), Action.SHOW),
    ],
)
def test_programs_are_started_by_name(programs: frozenset[str] | None, action: Action) -> None:
    (step,) = of(a_pane(program=a_program("/usr/bin/vim", "x & y")), policy=Policy(programs=programs))
    assert (step.action, step.argv) == (action, ("/usr/bin/vim", "x & y"))
    assert bool(step.why) is (action is Action.SHOW)


def test_a_dead_pane_is_shown_dead_whatever_was_in_it() -> None:
    (step,) = of(replace(an_agent(), dead=True, cwd=""))
    assert (step.action, step.cwd) == (Action.DEAD, "/home/dev")


# What is there


@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_a_session_is_left_alone_by_its_exact_name(name: str, other: str) -> None:
    snapshot = a_snapshot(a_capture(session=name))
    made = plan(snapshot, Living(topology=a_topology(session=other, pid=999)), {}, Policy())
    if name == other:
        assert made.is_done
        assert made.steps[0].action is Action.KEEP
    else:
        assert made.making == {"$0", "@0", "%0"}
        assert not made.sessions


def test_a_pane_that_is_there_without_its_conversation_is_left_alone_and_said() -> None:
    living = Living(topology=a_topology(pid=999))
    (step,) = of(an_agent(), living=living)
    assert step.action is Action.KEEP
    assert "c0ffee is not running in it" in step.why
    (step,) = of(an_agent(), living=replace(living, held={key(): Holder(place="pane %0", pane="%0")}))
    assert step.why == "it is there already"


def partly(*, pid: int) -> tuple[Snapshot, Plan]:
    """Windows 0 to 2; the middle one is gone, of the first its second pane, and somebody has index 1 now."""
    saved = a_topology_of(
        [a_session(0, "work")],
        [Link(session="$0", window=f"@{n}", index=n) for n in range(3)],
        [a_pane(0, window="@0"), a_pane(1, window="@0"), a_pane(2, window="@1"), a_pane(3, window="@2")],
    )
    there = a_topology_of(
        [a_session(0, "renamed" if pid == 300 else "work")],
        [Link(session="$0", window="@0", index=0), Link(session="$0", window="@2", index=2)],
        [a_pane(0, window="@0"), a_pane(3, window="@2")],
        pid=pid,
    )
    snapshot = a_snapshot_of(saved)
    return snapshot, plan(snapshot, Living(topology=there), {}, Policy())


@pytest.mark.parametrize("pid", [300, 999])
def test_a_partly_living_session_gets_only_what_is_missing(pid: int) -> None:
    _, made = partly(pid=pid)
    assert made.making == {"%1", "@1", "%2"}
    assert [(link.session, link.window, link.index) for link in made.links] == [("$0", "@1", 1)]
    assert [step.action for step in made.steps] == [Action.KEEP, Action.SHELL, Action.SHELL, Action.KEEP]


def test_a_window_whose_index_is_taken_gets_one_that_is_free() -> None:
    snapshot, _ = partly(pid=300)
    there = a_topology_of(
        [a_session(0, "work")],
        [Link(session="$0", window="@0", index=0), Link(session="$0", window="@9", index=1)],
        [a_pane(0, window="@0"), a_pane(9, window="@9")],
    )
    made = plan(snapshot, Living(topology=there), {}, Policy())
    assert [(link.window, link.index) for link in made.links] == [("@1", 2), ("@2", 3)]


def test_what_an_earlier_restore_made_on_a_server_that_lived_on_is_known() -> None:
    snapshot, _ = partly(pid=300)
    there = a_topology_of(
        [a_session(0, "work")],
        [Link(session="$0", window=window, index=n) for n, window in enumerate(("@0", "@7", "@2"))],
        [a_pane(0, window="@0"), a_pane(8, window="@0"), a_pane(9, window="@7"), a_pane(3, window="@2")],
    )
    assert plan(snapshot, Living(topology=there), {}, Policy()).making == {"%1", "@1", "%2"}
    assert plan(snapshot, Living(topology=there, made={"%8": "%1", "%9": "%2"}), {}, Policy()).is_done


def test_a_window_that_a_new_session_shares_is_made_by_the_one_that_lives() -> None:
    saved = a_topology_of(
        [a_session(0, "a", "a"), a_session(1, "two", "a")],
        [Link(session=f"${session}", window=f"@{n}", index=n) for session in (0, 1) for n in (0, 1)],
        [a_pane(0, window="@0"), a_pane(1, window="@1")],
    )
    there = a_topology_of(
        [a_session(0, "a", "a")],
        [Link(session="$0", window="@0", index=0), Link(session="$0", window="@5", index=1)],
        [a_pane(0, window="@0"), a_pane(5, window="@5")],
        pid=300,
    )
    asked = Policy(sessions=frozenset({"$1"}), panes=frozenset({"%0", "%1"}))
    made = plan(a_snapshot_of(saved), Living(topology=there), {}, asked)
    assert made.making == {"$1", "@1", "%1"}
    assert ("$0", "@1", 2) in [(link.session, link.window, link.index) for link in made.links]


def test_a_window_somebody_moved_is_not_put_back() -> None:
    snapshot, _ = partly(pid=300)
    there = replace(
        snapshot.topology,
        sessions=(*snapshot.topology.sessions, a_session(7, "else")),
        links=(*snapshot.topology.links[:2], Link(session="$7", window="@2", index=0)),
    )
    assert plan(snapshot, Living(topology=there), {}, Policy()).is_done


def moved(*places: tuple[int, int], gone: Sequence[int] = ()) -> tuple[Snapshot, Living]:
    """Two sessions of one window each, with panes 0 and 1, and 2 and 3; `places` say which pane is in which window now."""
    saved = a_topology_of(
        [a_session(0, "a"), a_session(1, "b")],
        [Link(session=f"${n}", window=f"@{n}", index=0) for n in (0, 1)],
        [a_pane(n, window=f"@{n // 2}", index=n % 2) for n in range(4)],
    )
    windows = {pane: pane // 2 for pane in range(4)} | dict(places)
    panes = [a_pane(pane, window=f"@{window}", index=pane) for pane, window in windows.items() if pane not in gone]
    shown = {pane.window for pane in panes}
    links = [link for link in saved.links if link.window in shown]
    sessions = [each for each in saved.sessions if each.id in {link.session for link in links}]
    return a_snapshot_of(saved), Living(topology=a_topology_of(sessions, links, panes))


def test_what_lives_elsewhere_is_not_missing_nor_is_the_place_it_left() -> None:
    snapshot, living = moved((2, 0), (3, 0))
    made = plan(snapshot, living, {}, Policy())
    assert made.is_done
    assert {step.action for step in made.steps} == {Action.KEEP}


def test_a_place_is_made_for_those_that_live_nowhere() -> None:
    snapshot, living = moved((2, 0), gone=[3])
    made = plan(snapshot, living, {}, Policy())
    assert made.making == {"$1", "@1", "%3"}
    assert [(link.session, link.window) for link in made.links] == [("$1", "@1")]
    assert plan(snapshot, living, {}, Policy(panes=frozenset({"%2"}))).is_done


def test_a_window_only_one_session_showed_is_not_put_back_into_it() -> None:
    snapshot, living = moved()
    there = living.topology
    assert there is not None
    links = (there.links[0], replace(there.links[1], session="$0", index=5))
    living = replace(living, topology=replace(there, sessions=there.sessions[:1], links=links))
    assert plan(snapshot, living, {}, Policy()).is_done


def test_two_sessions_that_share_their_windows_now_are_not_given_one_index_twice() -> None:
    snapshot, _ = moved()
    there = a_topology_of(
        [a_session(0, "a", "a"), a_session(9, "b", "a")],
        [Link(session=f"${n}", window="@5", index=7) for n in (0, 9)],
        [a_pane(5, window="@5")],
    )
    made = plan(snapshot, Living(topology=there), {}, Policy())
    assert [(link.window, link.index) for link in made.links] == [("@0", 0), ("@1", 8)]


def test_a_session_that_had_to_be_called_otherwise_is_known_again() -> None:
    snapshot, _ = moved()
    there = a_topology_of(
        [a_session(0, "b"), a_session(7, "b-2")],
        [Link(session="$0", window="@0", index=0), Link(session="$7", window="@8", index=0)],
        [*(a_pane(n, window="@0", index=n) for n in (0, 1)), *(a_pane(n, window="@8", index=n) for n in (8, 9))],
    )
    made = plan(snapshot, Living(topology=there, made={"%8": "%2"}), {}, Policy())
    assert made.sessions["$1"] == "$7"
    assert made.making == {"%3"}
    assert "$1" not in plan(snapshot, Living(topology=there), {}, Policy()).sessions


def test_a_linked_window_comes_back_into_a_session_that_lacks_it() -> None:
    saved = a_topology_of(
        [a_session(0, "a"), a_session(1, "b")],
        [Link(session="$0", window="@0", index=0), *(Link(session="$1", window=f"@{n}", index=n) for n in (1, 0))],
        [a_pane(0, window="@0"), a_pane(1, window="@1")],
    )
    there = replace(saved, links=(saved.links[0], saved.links[2]), process=replace(saved.process, pid=999))
    made = plan(a_snapshot_of(saved), Living(topology=there), {}, Policy())
    assert [(link.session, link.window, link.index) for link in made.links] == [("$1", "@0", 0)]
    assert not made.is_done


def test_an_id_that_is_another_window_s_now_hides_nothing() -> None:
    saved = a_topology_of(
        [a_session(0, "a"), a_session(1, "b")],
        [Link(session=f"${s}", window=f"@{w}", index=i) for s, w, i in ((0, 0, 0), (1, 1, 0), (1, 0, 1), (1, 2, 2))],
        [a_pane(n, window=f"@{n}") for n in range(3)],
    )
    there = a_topology_of(
        [a_session(0, "a"), a_session(1, "b")],
        [Link(session="$0", window="@1", index=0), Link(session="$1", window="@7", index=2)],
        [a_pane(1, window="@1"), a_pane(7, window="@7")],
        pid=999,
    )
    made = plan(a_snapshot_of(saved), Living(topology=there), {}, Policy())
    assert [(link.session, link.window, link.index) for link in made.links] == [("$1", "@1", 0), ("$1", "@0", 1)]


# What is asked for


def two_sessions() -> Snapshot:
    return a_snapshot_of(
        a_topology_of(
            [a_session(0, "a"), a_session(1, "b")],
            [Link(session="$0", window="@0", index=0), Link(session="$1", window="@1", index=0)],
            [a_pane(0, window="@0"), a_pane(1, window="@0"), a_pane(2, window="@1")],
        )
    )


@pytest.mark.parametrize(
    ("policy", "making"),
    [
        (Policy(sessions=frozenset({"$1"})), {"$1", "@1", "%2"}),
        (Policy(panes=frozenset({"%1"})), {"$0", "@0", "%1"}),
        (Policy(sessions=frozenset({"$0"}), panes=frozenset({"%1"})), {"$0", "@0", "%1"}),
        (Policy(sessions=frozenset(), panes=frozenset()), set()),
    ],
)
def test_only_what_is_asked_for_is_made(policy: Policy, making: set[str]) -> None:
    made = plan(two_sessions(), Living(), {}, policy)
    assert made.making == making
    assert {step.pane for step in made.steps if step.action is not Action.LEAVE} == {i for i in making if i[0] == "%"}
    assert all(link.session in making and link.window in making for link in made.links)
    assert len(made.steps) == 3


# Interrupted restores


def test_a_restore_of_another_snapshot_or_server_process_left_nothing_of_ours() -> None:
    snapshot = two_sessions()
    first = plan(snapshot, Living(), {}, Policy())
    there = replace(snapshot.topology, process=replace(snapshot.topology.process, pid=999))
    ours = begun_by(first)
    other = ServerProcess(pid=5, started_at=at(0), version="3.4")
    for restore in (replace(ours, snapshot="another"), replace(ours, process=other)):
        assert plan(snapshot, Living(topology=there, interrupted=restore), {}, Policy()).is_done
    assert not plan(snapshot, Living(topology=there, interrupted=ours), {}, Policy()).is_done


def test_what_an_interrupted_restore_made_goes_on_where_it_is() -> None:
    snapshot = a_snapshot(a_capture([an_agent()]))
    first = plan(snapshot, Living(), AGENTS, Policy())
    world = World(None)
    CarryingOut(snapshot, first, world).all()
    there = world.topology
    assert there is not None
    held = {key(): Holder(place="pane", pane=there.panes[0].id)}
    again = plan(snapshot, Living(topology=there, held=held, interrupted=begun_by(first)), AGENTS, Policy())
    assert again.steps[0].action is Action.RESUME
    assert again.unfinished == {"$0", "@0", "%0"}
    assert not again.making


def everything(topology: Topology) -> set[str]:
    return {each.id for part in (topology.sessions, topology.windows, topology.panes) for each in part}


@given(topologies(), st.integers(0, 40), st.integers(0, 3), st.booleans())
def test_after_an_interruption_exactly_the_rest_is_made(saved: Topology, many: int, base: int, twice: bool) -> None:
    snapshot = a_snapshot_of(saved)
    first = plan(snapshot, Living(), AGENTS, Policy())
    clean, broken = World(None), World(None)
    CarryingOut(snapshot, first, clean, base_index=base).all()
    interrupted = begun_by(first)
    for stop in (many, many // 2) if twice else (many,):
        living = broken.topology
        then = plan(snapshot, Living(topology=living, interrupted=interrupted), AGENTS, Policy())
        for _, act in zip(range(stop), CarryingOut(snapshot, then, broken, base_index=base).acts(), strict=False):
            act()
        interrupted = replace(interrupted, links=(*interrupted.links, *then.links))
    last = plan(snapshot, Living(topology=broken.topology, interrupted=interrupted), AGENTS, Policy())
    assert last.making | last.unfinished == everything(saved)
    assert not last.making & last.unfinished
    CarryingOut(snapshot, last, broken, base_index=base).all()
    assert shape(broken.topology) == shape(clean.topology)
    assert len(broken.panes) == len(saved.panes)


@given(topologies())
def test_what_was_made_leaves_nothing_to_do(saved: Topology) -> None:
    snapshot = a_snapshot_of(saved)
    world = World(None)
    CarryingOut(snapshot, plan(snapshot, Living(), AGENTS, Policy()), world).all()
    again = plan(snapshot, Living(topology=world.topology), AGENTS, Policy())
    assert again.is_done
    assert {step.action for step in again.steps} == {Action.KEEP}


@given(topologies(), st.data())
def test_what_is_missing_is_made_once(saved: Topology, data: st.DataObject) -> None:
    """Panes of a living server go, in the same server or another; afterwards nothing is left to do."""
    same = data.draw(st.booleans())
    gone = data.draw(st.sets(st.sampled_from([pane.id for pane in saved.panes])))
    panes = [pane for pane in saved.panes if pane.id not in gone]
    windows = {pane.window for pane in panes}
    links = [link for link in saved.links if link.window in windows]
    sessions = [session for session in saved.sessions if session.id in {link.session for link in links}]
    living = a_topology_of(sessions, links, panes, pid=300 if same else 999) if panes else None
    snapshot = a_snapshot_of(saved)
    made = plan(snapshot, Living(topology=living), AGENTS, Policy())
    if same:
        assert everything(saved) - made.making == {
            *(each.id for each in sessions),
            *windows,
            *(each.id for each in panes),
        }
    world = World(living)
    CarryingOut(snapshot, made, world).all()
    if same:
        restore = begun_by(made)
        again = plan(snapshot, Living(topology=world.topology, interrupted=restore), AGENTS, Policy())
        assert not again.making
    else:
        assert plan(snapshot, Living(topology=world.topology), AGENTS, Policy()).is_done
    assert len(world.panes) >= len(saved.panes)


# Always


def policies(saved: Topology) -> st.SearchStrategy[Policy]:
    some = st.none() | st.frozensets(st.sampled_from([session.id for session in saved.sessions]))
    panes = st.none() | st.frozensets(st.sampled_from([pane.id for pane in saved.panes]))
    return st.builds(
        Policy, lazy=st.booleans(), programs=st.sampled_from([None, frozenset()]), sessions=some, panes=panes
    )


@given(topologies(), topologies() | st.none(), st.data())
def test_every_pane_has_one_step_and_nothing_is_changed(
    saved: Topology, there: Topology | None, data: st.DataObject
) -> None:
    snapshot, living = a_snapshot_of(saved), Living(topology=there, held=some_held(saved, data))
    policy = data.draw(policies(saved))
    before = msgspec.json.encode([snapshot, there])
    made = plan(snapshot, living, AGENTS, policy)
    assert [step.n for step in made.steps] == list(range(1, len(saved.panes) + 1))
    assert [step.pane for step in made.steps] == in_order(saved)
    assert msgspec.json.encode([snapshot, there]) == before
    assert plan(snapshot, living, AGENTS, policy) == made
    assert not made.making & {*made.sessions, *made.windows, *made.panes}
    check_conversations(saved, made, living.held)


def some_held(saved: Topology, data: st.DataObject) -> Mapping[tuple[str, str | None, str], Holder]:
    known = [pane.identity.conversation for pane in saved.panes if pane.identity and pane.identity.conversation]
    held = data.draw(st.sets(st.sampled_from(known))) if known else set()
    return {key(each): Holder(place="process 7") for each in held}


def in_order(saved: Topology) -> list[str]:
    found: list[str] = []
    for link in saved.links:
        own = sorted((pane for pane in saved.panes if pane.window == link.window), key=lambda pane: pane.index)
        found += [pane.id for pane in own if pane.id not in found]
    return found


def check_conversations(saved: Topology, made: Plan, held: Mapping[tuple[str, str | None, str], Holder]) -> None:
    panes = {pane.id: pane for pane in saved.panes}
    started: Sequence[Step] = [step for step in made.steps if step.action in (Action.RESUME, Action.START)]
    conversations = [step.conversation for step in started]
    assert None not in conversations
    assert len(set(conversations)) == len(conversations)
    assert not {key(each or "") for each in conversations} & held.keys()
    for step in started:
        identity = panes[step.pane].identity
        assert identity is not None
        assert step.asks or identity.certain or step.action is Action.START
