"""Conversations that were saved and are not brought back: which, why, and what would bring them back. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator

from perdure.model.plan import AGENT_ACTIONS
from perdure.model.snapshot import Snapshot
from perdure.restore.plan import is_left_alone
from perdure.restore.prepare import Prepared
from perdure.restore.shown import LeftOut

_ENDED = "ended with the tmux server before, which was told to end or had no session left"


def left_out_of(snapshot: Snapshot, target: str, who: tuple[str, str], why: str, *, is_taken: bool) -> LeftOut:
    """Return a conversation of a snapshot as one that is not brought back: where it was, and an agent with its id."""
    session = target.rpartition(":")[0]
    return LeftOut(
        user=snapshot.server.user,
        socket=snapshot.server.socket,
        snapshot=snapshot.id,
        target=target,
        agent=who[0],
        conversation=who[1],
        why=why,
        argv=("perdure", "restore", "--from", snapshot.id, session),
        is_taken=is_taken,
    )


def ended_on_purpose(ready: Prepared) -> Iterator[LeftOut]:
    """Yield what would be brought back of a server that somebody ended: its conversations that are not running."""
    for step in ready.plan.steps:
        if step.agent is None or step.conversation is None:
            continue
        is_taken = is_left_alone(step)
        if step.action in AGENT_ACTIONS or is_taken:
            yield left_out_of(ready.snapshot, step.target, (step.agent, step.conversation), _ENDED, is_taken=is_taken)


def still_left_out(found: Iterable[LeftOut], back: Collection[tuple[str, str, str]]) -> list[LeftOut]:
    """Return those that nothing has brought back, each once; `back` are users, agents and conversations."""
    kept = {(each.user, each.agent, each.conversation): each for each in found}
    return [each for key, each in kept.items() if key not in back]


def sentence(each: LeftOut) -> str:
    """Say it to a person, without a full stop."""
    when = f", once no other pane is in {each.target}" if each.is_taken else ""
    what = f"{each.agent} in {each.conversation} ({each.target})"
    return f"{what} {each.why}; `{shlex.join(each.argv)}` brings it back{when}"
