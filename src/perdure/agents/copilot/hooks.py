"""How copilot records its conversation."""

from __future__ import annotations

from msgspec import json

from perdure.agents.hooking import Format, HookFacts, HookFile, record_line


def _files(directory: str) -> tuple[HookFile, ...]:
    # Events written this way, and not as `sessionStart`, come with the names other agents use, and with their own.
    events = ("SessionStart", "UserPromptSubmit", "Notification", "Stop", "SessionEnd")
    hooks = {event: [{"type": "command", "bash": record_line(directory, event), "timeoutSec": 10}] for event in events}
    text = json.format(json.encode({"version": 1, "hooks": hooks}), indent=2).decode() + "\n"
    return (HookFile(path="hooks/perdure.json", format=Format.OWN, text=text),)


#: The parent of its hooks is the native process, not the node loader that is the pane's first.
HOOKS = HookFacts(variables=(("COPILOT_HOME", ""),), usual_home=".copilot", files=_files)
