"""What an agent leaves in the environment of the commands it runs, and what tells a program that nobody looks at it.

A server started from such a command would hand these to every pane there ever is in it: the agents there would take
themselves for children of another one, or for a step of a pipeline, and refuse to talk to a person. Where each agent
lives and whom it talks to is not among them: that is for its adapter to name.
"""

from __future__ import annotations

from typing import Final

_MARKS: Final = frozenset(
    {
        *("CLAUDECODE", "CLAUDE_PID", "CLAUDE_EFFORT", "AI_AGENT"),
        *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION", "CODEX_CI"),
        *("CODEX_PERMISSION_PROFILE", "CODEX_MANAGED_BY_NPM"),
        *("GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "GEMINI_SESSION_ID"),
        *("QWEN_CODE", "HERMES_SESSION_ID", "HERMES_INTERACTIVE"),
        *("OPENCODE", "OPENCODE_PID", "AGENT"),
        *("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID", "COPILOT_LOADER_PID", "COPILOT_CLI_BINARY_VERSION"),
        # Gemini, for one, ends at once with these, on whatever terminal it is.
        *("CI", "GITHUB_ACTIONS"),
    }
)
_PREFIXES: Final = (
    *("CLAUDE_CODE_SESSION", "CLAUDE_CODE_CHILD", "CLAUDE_CODE_MESSAGING", "CLAUDE_CODE_ENTRYPOINT"),
    "CODEX_SANDBOX",
)


def marks_a_child(variable: str) -> bool:
    """Tell whether a variable says of a process that it is an agent's, or a pipeline's, and nothing about its user."""
    return variable in _MARKS or variable.startswith(_PREFIXES)
