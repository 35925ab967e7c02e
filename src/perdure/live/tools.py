"""What agents' tools are for, by their names, whoever's they are."""

from __future__ import annotations

from enum import StrEnum
from os.path import basename

from perdure.live import commands
from perdure.live.words import ASKED, one_line


class Kind(StrEnum):
    """What a tool is for."""

    EDIT = "edit"
    READ = "read"
    SEARCH = "search"
    SHELL = "shell"
    PLAN = "plan"
    #: It asks a person.
    ASK = "ask"
    #: Somebody else works in between.
    DELEGATE = "delegate"
    SKILL = "skill"
    OTHER = "other"


_NAMES: dict[Kind, str] = {
    Kind.EDIT: """edit write multiedit multi_edit notebookedit notebook_edit apply_patch write_file replace edit_file
        str_replace str_replace_editor str_replace_based_edit_tool create create_file insert patch text_editor
        replace_in_file write_to_file editor update_file file_edit file_write search_replace""",
    Kind.READ: """read read_file view cat read_many_files list ls list_directory list_dir read_text_file
        read_files view_image notebookread tree""",
    Kind.SEARCH: """grep glob search find rg search_file_content search_files codesearch websearch web_search
        google_web_search webfetch web_fetch fetch fetch_url toolsearch grep_search file_search web_extract""",
    Kind.SHELL: """bash shell exec_command local_shell run_shell_command terminal execute_command run_commands
        run_terminal_cmd shell_command execute_bash bash_tool powershell run_in_terminal exec unified_exec process""",
    Kind.PLAN: "todowrite todo_write update_plan write_todos todo todos taskcreate taskupdate plan enterplanmode",
    Kind.ASK: """askuserquestion ask_user ask_followup_question question request_user_input ask_user_question
        exitplanmode exit_plan_mode clarify ask_question""",
    Kind.DELEGATE: """task agent spawn_agent delegate delegate_task subagent dispatch_agent delegate_to_agent
        send_input wait_agent resume_agent use_subagents workflow""",
    Kind.SKILL: "skill activate_skill use_skill skill_view load_skill",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_CHANGING = ("write", "edit", "create", "replace", "patch", "delete", "rename", "move", "insert")
#: How an editor's tool says that it only shows a file.
_VIEW = "view "


def kind_of(tool: str, detail: str | None = None) -> Kind:
    """Return what a tool is for, `OTHER` when its name does not tell."""
    name = tool.lower().replace("-", "_")
    kind = _KINDS.get(name) or _KINDS.get(name.rpartition("__")[2].rpartition(".")[2])
    if kind is None:
        kind = Kind.DELEGATE if "agent" in name else Kind.OTHER
    return Kind.READ if kind is Kind.EDIT and (detail or "").startswith(_VIEW) else kind


def may_change_files(tool: str) -> bool:
    """Return whether a tool of no known kind sounds as if it changed files."""
    return any(word in tool.lower() for word in _CHANGING)


def doing(tool: str, detail: str | None) -> str:
    """Return what a call does, for a sentence that begins "it is"."""
    kind, given = kind_of(tool, detail), one_line(detail, ASKED) or ""
    if kind is Kind.SHELL:
        return (commands.verb_of(detail or "") or f"running {given}").strip() if given else "running a command"
    if kind in (Kind.EDIT, Kind.READ):
        verb = "editing" if kind is Kind.EDIT else "reading"
        return f"{verb} {_files(given.removeprefix(_VIEW))}" if given else f"{verb} files"
    if kind is Kind.SEARCH:
        return f"looking for {given}" if given else "searching"
    if kind is Kind.DELEGATE:
        return f"waiting for a sub-agent: {given}" if given else "waiting for a sub-agent"
    if kind is Kind.SKILL:
        return f"using the skill {given}" if given else "using a skill"
    if kind is Kind.PLAN:
        return "planning"
    if kind is Kind.ASK:
        return "asking a question"
    return f"using {one_line(tool, ASKED) or 'a tool'}"


def wanting(tool: str, detail: str | None) -> str:
    """Return what a call that waits for leave would do, for a sentence that begins "it wants to"."""
    kind, given = kind_of(tool, detail), one_line(detail, ASKED) or ""
    if kind is Kind.SHELL:
        return f"run {given}" if given else "run a command"
    if kind in (Kind.EDIT, Kind.READ):
        verb = "edit" if kind is Kind.EDIT else "read"
        return f"{verb} {_files(given.removeprefix(_VIEW))}" if given else f"{verb} files"
    return f"use {one_line(tool, ASKED) or 'a tool'}"


def _files(given: str) -> str:
    """Their names, without the directories."""
    names = [basename(each.rstrip("/")) or each for each in given.split(", ")]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
