"""Why a pane is taken for what it is: what was looked at, in order, and what was rejected. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from perdure.agents import Roster, agent_of
from perdure.model.identity import Identity
from perdure.model.process import Process
from perdure.model.screen import Screen, ScreenReading
from perdure.model.secrets import redact_argv
from perdure.ports import AgentAdapter
from perdure.snapshots.whose import whose


class Verdict(Struct, frozen=True, kw_only=True):
    """What a screen says, and whose screen it is. `state` is None when it cannot tell."""

    agent: str | None = None
    state: str | None = None
    reason: str | None = None
    rule: str | None = None
    confidence: float | None = None
    frozen: bool = False
    because: tuple[str, ...] = ()


class Explanation(Struct, frozen=True, kw_only=True):
    """Everything that led to what is said of a pane."""

    user: str
    socket: str
    pane_id: str
    agent: str | None
    recognition: tuple[str, ...]
    conversation: str | None
    evidence: str | None
    certain: bool | None
    because: tuple[str, ...]
    rejected: tuple[str, ...]
    #: What would bring the conversation back, without its secrets; None when nothing would.
    resume: tuple[str, ...] | None
    title: str
    screen: Verdict
    #: The agent was stopped (Ctrl-Z): it does nothing, and what the pane shows is another's.
    stopped: bool = False


def judge(screen: Screen, adapter: AgentAdapter) -> Verdict:
    """Return what the screen of this agent says."""
    reading = adapter.read_screen(screen)
    if reading is None:
        return Verdict(agent=adapter.name, because=("no rule fits this screen",))
    return _verdict(adapter.name, reading)


def judge_anybodys(screen: Screen, known: Sequence[AgentAdapter]) -> Verdict:
    """Return what a screen says of which nobody knows whose it is.

    Its signs tell whose it is, and then only that agent is asked. Without any, everybody is. Signs and rules that
    contradict each other say nothing.
    """
    told = whose(screen, known)
    if told.agent is not None:
        verdict = judge(screen, told.agent)
        return structs.replace(verdict, because=(*told.because, *verdict.because))
    if told.because:
        return Verdict(because=(*told.because, "signs of several agents; say whose screen it is"))
    verdicts = [verdict for adapter in known if (verdict := judge(screen, adapter)).rule is not None]
    if not verdicts:
        return Verdict(because=("no rule of any agent fits this screen",))
    best = max(verdicts, key=lambda verdict: verdict.confidence or 0)
    if len(verdicts) == 1:
        return best
    rules = ", ".join(verdict.rule or "" for verdict in verdicts)
    if len({(verdict.state, verdict.reason, verdict.frozen) for verdict in verdicts}) > 1:
        return Verdict(because=(f"rules of several agents fit and disagree: {rules}; say whose screen it is",))
    return structs.replace(best, agent=None, because=(f"rules of several agents fit and agree: {rules}",))


def _verdict(agent: str, reading: ScreenReading) -> Verdict:
    return Verdict(
        agent=agent,
        state=reading.state.value if reading.state else None,
        reason=reading.reason,
        rule=reading.rule,
        confidence=reading.confidence,
        frozen=reading.frozen,
        because=reading.because or (f"{reading.rule} fits",),
    )


def recognition(tree: Sequence[Process], known: Roster) -> Iterator[str]:
    """Yield for every process of a pane whose it may be, and which of them is the pane's agent."""
    found = agent_of(tree, known)
    for process in tree:
        claims = [
            f"{adapter.name} {score:.1f}" for adapter in known.everyone() if (score := adapter.score(process)) > 0
        ]
        line = " ".join(redact_argv(process.argv)) or f"[{process.comm}]"
        if len(line) > _LONGEST:
            line = line[: _LONGEST - 1] + "…"
        what = ", ".join(claims) or "no agent"
        if found is not None and process is found[1]:
            what += ": the agent of this pane"
        elif claims:
            what += ": not the agent of this pane, another process stands before it"
        yield f"process {process.pid}, {line}: {what}"


_LONGEST = 100


def rejected(claims: Sequence[Identity], chosen: Identity | None, because: Sequence[str]) -> Iterator[str]:
    """Yield the conversations that were considered and not taken, with the reason."""
    taken = chosen.conversation if chosen else None
    for claim in claims:
        if claim.conversation is None or claim.conversation == taken:
            continue
        held = next((why for why in because if why.startswith(f"{claim.conversation}: ")), None)
        by = f"{claim.evidence.value if claim.evidence else 'nothing'}{'' if claim.certain else ', uncertain'}"
        yield held or f"{claim.conversation}: by {by}; what was taken is better known"
