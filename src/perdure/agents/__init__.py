"""One file or folder per agent CLI, judged on evidence handed to it, and the plain programs beside them.

What the rest of the program needs is here; a new agent is a new file, or a folder, and one line in `_registry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from perdure.agents._registry import HOOKED, Roster, adapters, agent_of, clashes, environment_names, roster
from perdure.agents.generic import program_of

if TYPE_CHECKING:
    from perdure.agents.hooking import HookFacts

__all__ = ["Roster", "adapters", "agent_of", "clashes", "environment_names", "hook_facts", "program_of", "roster"]


def hook_facts() -> Mapping[str, HookFacts]:
    """Return how agents are hooked, by their names, in the order of these."""
    return {name: import_module(f"perdure.agents.{name}.hooks").HOOKS for name in HOOKED}
