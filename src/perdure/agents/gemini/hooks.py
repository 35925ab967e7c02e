"""How gemini records its conversation."""

from __future__ import annotations

from perdure.agents.hooking import HookFacts, settings_file

_EVENTS = ("SessionStart", "BeforeAgent", "Notification", "AfterAgent", "SessionEnd")

#: The parent of its hooks is the node process that gemini's first one starts again with more memory.
HOOKS = HookFacts(
    variables=(("GEMINI_CLI_HOME", ".gemini"),),
    usual_home=".gemini",
    # While a hook runs it is shown by its name; without one, the whole line would be.
    files=settings_file("settings.json", _EVENTS, more={"name": "perdure"}),
)
