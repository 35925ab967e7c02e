"""How Codex shows its thread."""

from __future__ import annotations

from perdure.agents.hooking import Format, HookFacts, HookFile, Setting


def _files(directory: str) -> tuple[HookFile, ...]:
    # "activity" and "project-name" are what it shows anyway.
    shown = ("activity", "project-name", "thread-id")
    setting = Setting(table="tui", key="terminal_title", value=shown, needed="thread-id")
    return (HookFile(path="config.toml", format=Format.TOML, setting=setting),)


#: Its hooks run in a daemon that serves all panes, with the environment of the pane that happened to start it, and new
#: ones stop every start with a question. The thread's id in the title is certain and asks nothing.
HOOKS = HookFacts(
    variables=(("CODEX_HOME", ""),),
    usual_home=".codex",
    files=_files,
    records=False,
    note="It shows its thread in the terminal title instead of recording it: its hooks do not know their pane.",
)
