"""One file per agent CLI, judged on evidence handed to it, and the plain programs beside them.

What the rest of the program needs is here; a new agent is a new file and one line in `_registry`.
"""

from __future__ import annotations

from perdure.agents._registry import adapters, agent_of, environment_names
from perdure.agents.generic import program_of

__all__ = ["adapters", "agent_of", "environment_names", "program_of"]
