"""An agent in a pane as scripts are told of it, whoever tells: the same words everywhere, secrets aside."""

from __future__ import annotations

from typing import Any

from perdure.model.identity import AgentDetails, Identity
from perdure.model.secrets import redact_text
from perdure.model.who import Who


def agent_row(identity: Identity | None, details: AgentDetails | None, who: Who) -> dict[str, Any]:
    """Return the fields of a row that are about the agent and its conversation; None for what is not known."""
    about = details or AgentDetails()
    return {
        "who": str(who),
        "conversation": identity.conversation if identity else None,
        "certain": identity.certain if identity else None,
        "evidence": identity.evidence.value if identity and identity.evidence else None,
        "profile": identity.profile if identity else None,
        "prompted": identity.prompted if identity else None,
        "conversation_title": redact_text(about.title) if about.title else None,
        "parent": about.parent,
        "began_at": about.began_at,
        "last_activity_at": about.last_activity_at,
        "agent_version": about.version,
        "model": about.model,
        "provider": about.provider,
        "context_used": about.context_used,
        "context_limit": about.context_limit,
        "context_pct": about.context_pct,
        "task": redact_text(about.task) if about.task else None,
        "transcript": about.transcript,
        "branch": about.branch,
    }
