from __future__ import annotations

import pytest

from perdure.model.identity import AgentDetails, Evidence


def test_evidence_is_ranked_strongest_first() -> None:
    ranked = sorted(Evidence, key=lambda evidence: evidence.rank)
    assert ranked[0] is Evidence.REGISTRY
    # Last, what nobody is in: a pane that waits to start it, and one that only has its id.
    assert ranked[-3:] == [Evidence.GUESS, Evidence.LAUNCH, Evidence.KEPT]
    assert Evidence.REGISTRY.rank < Evidence.HOOK.rank < Evidence.REMEMBERED.rank < Evidence.ARGV.rank


@pytest.mark.parametrize(
    ("used", "limit", "share"),
    [(50_000, 200_000, 25), (0, 200_000, 0), (None, 200_000, None), (50_000, None, None), (50_000, 0, None)],
)
def test_a_share_of_something_unknown_is_unknown(used: int | None, limit: int | None, share: int | None) -> None:
    assert AgentDetails(context_used=used, context_limit=limit).context_pct == share
