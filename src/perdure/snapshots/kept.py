"""Conversations that a restore could not resume, for as long as their panes are there. Pure.

Such a pane is a shell, and nothing in it tells of the conversation: the next snapshot would have forgotten it. So the
restore leaves a mark on the pane that leads to what the journal says. Once a person has had an agent in the pane the
mark is void: what becomes of the conversation was up to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from perdure.model.identity import Evidence, Identity
from perdure.model.plan import Kept
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Pane, PaneDetails
from perdure.snapshots.capture import with_panes
from perdure.snapshots.identify import Earlier
from perdure.snapshots.remember import Held

#: The pane option that is the mark.
OPTION = "@perdure-kept"
#: Gives what a restore has kept of a pane of its snapshot, None when nothing is known of that.
Journalled = Callable[[str, str], Kept | None]
#: What one pane of the machine may have.
_Key = tuple[str, str | None, str | None]
#: Evidence that no agent has run in the pane since.
_UNUSED = (Evidence.KEPT, Evidence.LAUNCH)
_BECAUSE = ("a restore did not resume it here, and no agent has run in this pane since",)


def mark_of(restore: str, pane: str) -> str:
    """Return the mark for what a restore made of a pane of its snapshot."""
    return f"{restore}:{pane}"


def with_kept(
    captures: Sequence[Capture], earlier: Earlier, journalled: Journalled, elsewhere: Callable[[], Sequence[Held]]
) -> list[Capture]:
    """Return the identified captures of one user with the conversations that are kept for marked panes.

    One that any other pane has is not kept: it lives, or waits, there. Costs nothing where no pane is marked.
    """
    if not any(_is_open(pane) for capture in captures for pane in capture.topology.panes):
        return list(captures)
    identities = [pane.identity for capture in captures for pane in capture.topology.panes if pane.identity]
    taken = {_key(each) for each in (*identities, *(held.identity for held in elsewhere()))}
    return [_keep(capture, earlier(capture.server), journalled, taken) for capture in captures]


def _is_open(pane: Pane) -> bool:
    return OPTION in pane.options and pane.identity is None and not pane.dead


def _keep(capture: Capture, before: Snapshot | None, journalled: Journalled, taken: set[_Key]) -> Capture:
    panes, details = [], dict(capture.details.panes)
    for pane in capture.topology.panes:
        kept = _kept(pane, capture, before, journalled) if _is_open(pane) else None
        if kept is not None and _key(kept.identity) not in taken:
            taken.add(_key(kept.identity))
            identity = msgspec.structs.replace(kept.identity, evidence=Evidence.KEPT)
            pane = msgspec.structs.replace(pane, identity=identity, program=kept.program)
            known = details.get(pane.id, PaneDetails())
            details[pane.id] = msgspec.structs.replace(known, agent=kept.agent, because=_BECAUSE)
        panes.append(pane)
    return with_panes(capture, panes, details)


def _kept(pane: Pane, capture: Capture, before: Snapshot | None, journalled: Journalled) -> Kept | None:
    """What is kept for a marked pane: what the last save kept, or if that did not know the mark, what the mark says."""
    mark = pane.options[OPTION]
    then = None
    # tmux gives an id to one pane only for as long as it runs.
    if before is not None and before.topology.process == capture.topology.process:
        then = next((each for each in before.topology.panes if each.id == pane.id), None)
    if before is None or then is None or then.options.get(OPTION) != mark:
        restore, _, its_pane = mark.partition(":")
        return journalled(restore, its_pane)
    if then.identity is None or then.identity.evidence not in _UNUSED:
        return None
    known = before.details.panes.get(pane.id)
    return Kept(identity=then.identity, program=then.program, agent=known.agent if known else None)


def _key(identity: Identity) -> _Key:
    return (identity.agent, identity.profile, identity.conversation)
