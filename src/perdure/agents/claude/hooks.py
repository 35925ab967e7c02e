"""How Claude Code records its conversation."""

from __future__ import annotations

from perdure.agents.hooking import COMMON_EVENTS, HookFacts, settings_file

HOOKS = HookFacts(
    variables=(("CLAUDE_CONFIG_DIR", ""),),
    usual_home=".claude",
    # It says its pid itself; in versions that do not, it is the parent of the shell.
    files=settings_file("settings.json", COMMON_EVENTS, pid="${CLAUDE_PID:-$PPID}"),
)
