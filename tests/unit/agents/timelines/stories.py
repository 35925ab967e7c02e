"""The same day in the life of every agent: recorded screens, and what its hooks left at those moments.

It starts, is asked something, wants to be allowed a command, gets leave, ends; somebody looks; it is asked again and
interrupted; somebody opens a viewer; it asks a question, and exits. Nobody records the answer, nor the interruption.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from perdure.model.process import Process
from tests.unit.agents.hosts import process
from tests.unit.agents.timelines.player import Exited, Hooked, Looked, Shown, Step, hook_record


class Cast(NamedTuple):
    """An agent's screens, by what it was doing, and the names of its events."""

    agent: str
    version: str
    fresh: str
    busy: str
    approval: str
    tool: str
    after: str
    interrupted: str
    viewer: str
    question: str
    #: At rest, at other sizes of the pane.
    sizes: tuple[str, ...]
    begins: tuple[str, ...] = ()
    prompted: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    #: Processes it runs below the one it was started as; the last runs its hooks.
    below: tuple[Process, ...] = ()

    @property
    def process(self) -> Process:
        """What was started."""
        return process(*_ARGV.get(self.agent, (self.agent,)), ticks=5000)

    def hook(self, at: float, *events: str) -> list[Step]:
        """Return records of these events, in this order, an instant apart."""
        return [Hooked(at + place / 100, self._record(event)) for place, event in enumerate(events)]

    def _record(self, event: str) -> dict[str, Any]:
        name, _, status = event.partition("=")
        return hook_record(self.version, name) | ({"status": status} if status else {})

    def show(self, at: float, name: str) -> Shown:
        """Return a recorded screen."""
        return Shown(at, f"{self.version}/{name}")

    def story(self, *, hooks: bool) -> list[Step]:
        """Return everything that happens, with what hooks record or without."""
        show, steps = self.show, list[Step]()
        steps += [show(2, self.fresh), show(10.3, self.busy), show(12, self.busy)]
        steps += [show(20.3, self.approval), show(21, self.approval), show(30, self.tool), show(35, self.tool)]
        steps += [show(40.3, self.after), show(42, self.after), Looked(45)]
        steps += [show(46 + place, name) for place, name in enumerate(self.sizes)]
        steps += [show(60.3, self.busy), show(66, self.busy), show(70, self.interrupted), show(72, self.interrupted)]
        steps += [Looked(75), show(80, self.viewer), show(81, self.viewer), show(86, self.interrupted)]
        steps += [show(90.3, self.busy), show(95, self.question), show(96, self.question), Exited(110)]
        if not hooks:
            return steps
        steps += self.hook(1, *self.begins)
        steps += [each for at in (10, 60, 90) for each in self.hook(at, *self.prompted)]
        return [*steps, *self.hook(20, *self.asks), *self.hook(40, *self.ends)]


_NODE = {"gemini": "/usr/bin/gemini", "qwen": "/usr/bin/qwen"}
_ARGV = {agent: ("node", path) for agent, path in _NODE.items()}


def _worker(agent: str) -> tuple[Process, ...]:
    return (process("node", _NODE[agent], pid=101, ppid=100),)


CASTS = (
    Cast(
        "claude",
        "claude-code-2.1.325",
        fresh="idle-fresh",
        busy="busy-thinking",
        approval="approval-bash",
        tool="busy-tool",
        after="idle-after-turn",
        interrupted="idle-after-interrupt",
        viewer="viewer-model",
        question="question-one",
        sizes=(
            "idle-fresh-bypass-60x15",
            "idle-named-60x20",
            "idle-quote-60x15",
            "idle-context-low",
            "idle-vim-statusline",
        ),
        begins=("SessionStart",),
        prompted=("UserPromptSubmit",),
        asks=("PermissionRequest", "Notification"),
        ends=("Stop",),
    ),
    Cast(
        "codex",
        "codex-0.166.0",
        fresh="idle-fresh-120",
        busy="busy-thinking-200",
        approval="approval-shell-120",
        tool="busy-tool-120",
        after="idle-after-approval-60",
        interrupted="idle-interrupted-120",
        viewer="viewer-transcript-80",
        question="question-80",
        sizes=(
            "idle-fresh-60x10",
            "idle-fresh-80x14",
            "idle-fresh-90still",
            "idle-reply-is-status-60",
            "idle-reminder-100",
        ),
    ),
    Cast(
        "gemini",
        "gemini-0.61.0",
        fresh="idle_fresh_120",
        busy="busy_waiting_120",
        approval="attention_shell_200",
        tool="busy_tool_120",
        after="idle_tool_80",
        interrupted="idle_cancelled_120",
        viewer="viewer_settings_80",
        question="attention_question_120",
        sizes=("idle_fresh_60", "idle_long_60", "idle_turn_200", "idle_quote_80", "idle_clean_100"),
        begins=("SessionStart",),
        prompted=("BeforeAgent",),
        asks=("Notification",),
        ends=("AfterAgent",),
        below=_worker("gemini"),
    ),
    Cast(
        "qwen",
        "qwen-0.15.10",
        fresh="idle_fresh_120",
        busy="busy_waiting_120",
        approval="attention_shell_200",
        tool="busy_tool_80",
        after="idle_tool_60",
        interrupted="idle_cancelled_200",
        viewer="viewer_approval_mode_120",
        question="attention_question_80",
        sizes=("idle_fresh_60", "idle_long_60", "idle_turn_200", "idle_quote_80", "idle_todo_60"),
        begins=("SessionStart",),
        prompted=("UserPromptSubmit",),
        asks=("PermissionRequest", "Notification"),
        ends=("Stop",),
        below=_worker("qwen"),
    ),
    Cast(
        "copilot",
        "copilot-1.0.102",
        fresh="idle_fresh_80",
        busy="busy_first_token_80",
        approval="approval_shell_80",
        tool="busy_tool_80",
        after="idle_after_tool_120",
        interrupted="idle_interrupted_120",
        viewer="view_settings_80",
        question="question_choice_80",
        sizes=("idle_fresh_200", "idle_fresh_60", "idle_sidebar_60", "idle_sidebar_200", "idle_printed_usage_60"),
        prompted=("SessionStart", "UserPromptSubmit"),
        asks=("Notification",),
        ends=("Stop",),
    ),
    Cast(
        "cline",
        "cline-3.0.65",
        fresh="idle_fresh_80",
        busy="busy_first_token_80",
        approval="approval_shell_80",
        tool="busy_tool_80",
        after="idle_after_tool_120",
        interrupted="idle_interrupted_120",
        viewer="view_settings_80",
        question="question_80",
        sizes=("idle_fresh_200", "idle_fresh_60", "idle_long_reply_60", "idle_plan_mode_60", "quote_busy_60"),
    ),
    Cast(
        "opencode",
        "opencode-1.18.33",
        fresh="home_120x40",
        busy="busy_before_first_token_120x40",
        approval="approval_bash_120x40",
        tool="busy_tool_80x24",
        after="idle_after_tool_120x40",
        interrupted="idle_interrupted_80x24",
        viewer="viewer_models_80x24",
        question="question_single_120x40",
        sizes=(
            "home_60x30",
            "idle_after_turn_80x24",
            "idle_after_turn_200x50",
            "idle_reply_quotes_80x24",
            "idle_todos_80x24",
        ),
        prompted=("message.updated", "session.status=busy"),
        asks=("permission.asked",),
        ends=("session.status=idle",),
    ),
    Cast(
        "hermes",
        "hermes-0.19.0",
        fresh="idle_fresh_120x40",
        busy="busy_thinking_200x50",
        approval="approval_shell_120x40",
        tool="busy_tool_120x40",
        after="idle_after_tool_200x50",
        interrupted="idle_interrupted_120x40",
        viewer="viewer_model_80x24",
        question="question_choices_120x40",
        sizes=(
            "idle_fresh_60x30",
            "idle_after_turn_60x30",
            "idle_long_reply_80x24",
            "idle_help_200x50",
            "tui_idle_120x40",
        ),
        begins=("on_session_reset",),
        prompted=("on_session_start",),
        asks=("pre_approval_request",),
        ends=("on_session_end",),
    ),
    Cast(
        "goose",
        "goose-1.34.0",
        fresh="idle_fresh_120",
        busy="busy_wait_120",
        approval="approval_shell_120",
        tool="busy_approved_tool_120",
        after="idle_after_approval_120",
        interrupted="idle_interrupted_80",
        viewer="idle_help_120",
        question="question_cwd_100",
        sizes=("idle_fresh_60", "idle_fresh_200", "idle_tool_60", "idle_quote_120", "idle_typed_long_80"),
    ),
    Cast(
        "aider",
        "aider-0.86.2",
        fresh="idle_fresh_120",
        busy="busy_wait_120",
        approval="approval_shell_80",
        tool="busy_shell_80",
        after="idle_after_run_120",
        interrupted="idle_interrupted_120",
        viewer="idle_help_100",
        question="question_run_120",
        sizes=("idle_fresh_60", "idle_fresh_80", "idle_long_80", "idle_quote_100", "idle_rule_70"),
    ),
)
