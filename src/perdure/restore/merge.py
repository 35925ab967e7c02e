"""A snapshot from before a fall, with what is known of its panes since. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from perdure.model.snapshot import Snapshot
from perdure.model.topology import Pane, PaneDetails
from perdure.restore.left_out import left_out_of
from perdure.restore.plan import Conversation, targets
from perdure.restore.shown import LeftOut

_DISPLACED = "was there before, and another has its place now"


class Merged(Struct, frozen=True, kw_only=True):
    """The snapshot to bring back, and each conversation that has no place in it any more."""

    snapshot: Snapshot
    left_out: tuple[LeftOut, ...] = ()


def merged(before: Snapshot, latest: Snapshot) -> Merged:
    """Return the snapshot from before a fall, with every agent the later one has in the same pane or the same place.

    An agent wins over a shell, since agents that were killed leave shells; of two agents the later one. A
    conversation is where it was last.
    """
    pairs = _pairs(before, latest)
    held = {key for pane in latest.topology.panes if (key := _key(pane)) is not None}
    panes, details, left_out = [], dict(before.details.panes), []
    for target, pane in targets(before.topology):
        other = pairs.get(pane.id)
        key = _key(pane)
        if other is not None and other.identity is not None:
            panes.append(_with_content_of(pane, other))
            details[pane.id] = latest.details.panes.get(other.id, PaneDetails())
            is_progress = other.id == pane.id and _is_same_server(before, latest)
            if key is not None and key not in held and not is_progress:
                left_out.append(left_out_of(before, target, (key[0], key[2]), _DISPLACED, is_taken=True))
        elif key is not None and key in held:
            # It has gone on somewhere else: here it leaves a shell.
            panes.append(structs.replace(pane, identity=None, program=None))
        else:
            panes.append(pane)
    changed = {pane.id: pane for pane in panes}
    topology = structs.replace(before.topology, panes=tuple(changed[pane.id] for pane in before.topology.panes))
    snapshot = structs.replace(before, topology=topology, details=structs.replace(before.details, panes=details))
    return Merged(snapshot=snapshot, left_out=tuple(left_out))


def _pairs(before: Snapshot, latest: Snapshot) -> Mapping[str, Pane]:
    """The later pane for each earlier one: the very same while its server runs, else the one in its place."""
    by_id = {pane.id: pane for pane in latest.topology.panes} if _is_same_server(before, latest) else {}
    by_place = dict(targets(latest.topology))
    same = {pane.id for pane in before.topology.panes if pane.id in by_id}
    found = {}
    for target, pane in targets(before.topology):
        other = by_id.get(pane.id) or by_place.get(target)
        if other is not None and (other.id == pane.id or other.id not in same):
            found[pane.id] = other
    return found


def _is_same_server(before: Snapshot, latest: Snapshot) -> bool:
    return before.topology.process == latest.topology.process


def _with_content_of(pane: Pane, other: Pane) -> Pane:
    return structs.replace(
        pane,
        cwd=other.cwd,
        command=other.command,
        title=other.title,
        dead=other.dead,
        exit_status=other.exit_status,
        exit_signal=other.exit_signal,
        program=other.program,
        identity=other.identity,
    )


def _key(pane: Pane) -> Conversation | None:
    identity = pane.identity
    if identity is None or identity.conversation is None:
        return None
    return (identity.agent, identity.profile, identity.conversation)
