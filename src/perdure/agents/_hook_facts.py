"""Every agent that can record its conversation, and how, as measured on the real programs.

Asked for are the events that say which conversation a process is in and whether it waits for somebody. Those around
tools are not: there are many, and they carry whole files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import json

from perdure.agents._hook_plugin import plugin
from perdure.agents.hooking import MARK, Entry, Format, HookFacts, HookFile, Setting, record_line, shell_quoted


def _settings(
    path: str, events: Sequence[str], pid: str = "$PPID", more: Mapping[str, object] | None = None
) -> Callable[[str], tuple[HookFile, ...]]:
    """Return the plan for a settings file in which each event has a list of groups of commands."""

    def files(directory: str) -> tuple[HookFile, ...]:
        entries = (
            Entry(
                path=("hooks", event),
                value={
                    "hooks": [{"type": "command", **(more or {}), "command": record_line(directory, event, pid=pid)}]
                },
            )
            for event in events
        )
        return (HookFile(path=path, format=Format.JSON, entries=tuple(entries)),)

    return files


#: What Claude Code calls its events, and those who took them over from it.
_COMMON = ("SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "Stop", "SessionEnd")
#: While a hook runs it is shown by its name; without one, the whole line would be.
_NAMED = {"name": "perdure"}

_CLAUDE = HookFacts(
    variables=(("CLAUDE_CONFIG_DIR", ""),),
    usual_home=".claude",
    # It says its pid itself; in versions that do not, it is the parent of the shell.
    files=_settings("settings.json", _COMMON, pid="${CLAUDE_PID:-$PPID}"),
)

#: The parent of its hooks is the node process that gemini's first one starts again with more memory.
_GEMINI = HookFacts(
    variables=(("GEMINI_CLI_HOME", ".gemini"),),
    usual_home=".gemini",
    files=_settings(
        "settings.json", ("SessionStart", "BeforeAgent", "Notification", "AfterAgent", "SessionEnd"), more=_NAMED
    ),
)

#: As with gemini, from which it comes, the second of its two node processes.
_QWEN = HookFacts(
    variables=(("QWEN_HOME", ""),),
    usual_home=".qwen",
    files=_settings("settings.json", _COMMON, more=_NAMED),
)


def _copilot_files(directory: str) -> tuple[HookFile, ...]:
    # Events written this way, and not as `sessionStart`, come with the names other agents use, and with their own.
    events = ("SessionStart", "UserPromptSubmit", "Notification", "Stop", "SessionEnd")
    hooks = {event: [{"type": "command", "bash": record_line(directory, event), "timeoutSec": 10}] for event in events}
    text = json.format(json.encode({"version": 1, "hooks": hooks}), indent=2).decode() + "\n"
    return (HookFile(path="hooks/perdure.json", format=Format.OWN, text=text),)


#: The parent of its hooks is the native process, not the node loader that is the pane's first.
_COPILOT = HookFacts(variables=(("COPILOT_HOME", ""),), usual_home=".copilot", files=_copilot_files)


def _codex_files(directory: str) -> tuple[HookFile, ...]:
    # "activity" and "project-name" are what it shows anyway.
    shown = ("activity", "project-name", "thread-id")
    setting = Setting(table="tui", key="terminal_title", value=shown, needed="thread-id")
    return (HookFile(path="config.toml", format=Format.TOML, setting=setting),)


#: Its hooks run in a daemon that serves all panes, with the environment of the pane that happened to start it, and new
#: ones stop every start with a question. The thread's id in the title is certain and asks nothing.
_CODEX = HookFacts(
    variables=(("CODEX_HOME", ""),),
    usual_home=".codex",
    files=_codex_files,
    records=False,
    note="It shows its thread in the terminal title instead of recording it: its hooks do not know their pane.",
)


def _hermes_files(directory: str) -> tuple[HookFile, ...]:
    # Not `pre_llm_call` and `post_llm_call`: they carry the whole conversation, every turn.
    events = ("on_session_start", "on_session_reset", "pre_approval_request", "on_session_end", "on_session_finalize")
    # It takes commands apart itself and starts them without a shell.
    lines = {event: f"/bin/sh -c {shell_quoted(record_line(directory, event, marked=False))}" for event in events}
    consents = (
        Entry(path=("approvals",), value={"event": event, "command": line, "perdure": MARK})
        for event, line in lines.items()
    )
    hooks = (Entry(path=("hooks", event), value={"command": line, "perdure": MARK}) for event, line in lines.items())
    return (
        HookFile(path="shell-hooks-allowlist.json", format=Format.JSON, entries=tuple(consents)),
        HookFile(path="config.yaml", format=Format.YAML, entries=tuple(hooks)),
    )


_HERMES = HookFacts(
    variables=(("HERMES_HOME", ""),),
    usual_home=".hermes",
    files=_hermes_files,
    note="Its list of approved hooks got these too, so that it does not ask at the next start.",
)


def _opencode_files(directory: str) -> tuple[HookFile, ...]:
    return (HookFile(path="plugin/perdure.js", format=Format.OWN, text=plugin(directory)),)


_OPENCODE = HookFacts(
    variables=(("OPENCODE_CONFIG_DIR", ""), ("XDG_CONFIG_HOME", "opencode")),
    usual_home=".config/opencode",
    files=_opencode_files,
)

FACTS: Mapping[str, HookFacts] = {
    "claude": _CLAUDE,
    "codex": _CODEX,
    "copilot": _COPILOT,
    "gemini": _GEMINI,
    "hermes": _HERMES,
    "opencode": _OPENCODE,
    "qwen": _QWEN,
}
