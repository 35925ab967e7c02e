"""How qwen records its conversation."""

from __future__ import annotations

from perdure.agents.hooking import COMMON_EVENTS, HookFacts, settings_file

#: As with gemini, from which it comes, the parent is the second of its two node processes, and hooks are shown by name.
HOOKS = HookFacts(
    variables=(("QWEN_HOME", ""),),
    usual_home=".qwen",
    files=settings_file("settings.json", COMMON_EVENTS, more={"name": "perdure"}),
)
