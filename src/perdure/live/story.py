"""What a conversation tells of the work in it: the task, the calls, whether it waits, and what became of the files.

Pure, and the same for every agent: it goes by the turns that `ReadsTranscripts` promises, and by nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, structs

from perdure.live import commands
from perdure.live.skill import skill_in
from perdure.live.tools import Kind, kind_of, may_change_files
from perdure.live.words import one_line

_MOST_ACTIONS = 10
_TASK, _DETAIL, _ANSWER = 300, 200, 1000


class Action(Struct, frozen=True, kw_only=True):
    """A tool that was called."""

    tool: str
    detail: str | None = None

    @property
    def kind(self) -> Kind:
        """What the tool is for."""
        return kind_of(self.tool, self.detail)


class Work(Struct, frozen=True, kw_only=True):
    """What became of the files, after the last edit. None: something was done that may have been it, and may not."""

    edited: bool = False
    validated: bool | None = False
    looked_over: bool | None = False
    committed: bool = False


class Story(Struct, frozen=True, kw_only=True):
    """What the turns come to."""

    #: What a person last asked for.
    task: str | None = None
    #: The last calls, the latest last.
    actions: tuple[Action, ...] = ()
    #: The call that has not been answered yet.
    current: Action | None = None
    #: The last call since a person spoke that was answered.
    last: Action | None = None
    #: The agent's last words, when nothing was called after them.
    answer: str | None = None
    #: Whether these were its last until it is spoken to; None when the transcript does not say.
    final: bool | None = None
    #: When it said them, where the transcript tells.
    answered_at: datetime | None = None
    work: Work = Work()
    skill: str | None = None

    @property
    def tells(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.task or self.actions or self.answer)

    @property
    def asks(self) -> bool:
        """Whether it has called for a person, and nobody has answered."""
        return self.current is not None and self.current.kind is Kind.ASK


def story_of(turns: Iterable[Mapping[str, object]]) -> Story:
    """Return what the turns of the main conversation tell. Sub-agents' are passed over."""
    reader = _Reader()
    for turn in turns:
        if turn.get("agent") is None:
            reader.take(turn)
    return reader.story()


class _Reader:
    def __init__(self) -> None:
        self._task: str | None = None
        self._answer: str | None = None
        self._final: bool | None = None
        self._answered_at: datetime | None = None
        self._skill: str | None = None
        self._actions: deque[Action] = deque(maxlen=_MOST_ACTIONS)
        self._open: list[Action] = []
        self._last: Action | None = None
        self._work = Work()

    def story(self) -> Story:
        return Story(
            # Only of the last one: to look for secrets is dear.
            task=one_line(self._task, _TASK),
            actions=tuple(self._actions),
            current=self._open[-1] if self._open else None,
            last=self._last,
            answer=self._answer,
            final=self._final,
            answered_at=None if self._answer is None else self._answered_at,
            work=self._work,
            skill=self._skill,
        )

    def take(self, turn: Mapping[str, object]) -> None:
        self._skill = skill_in(turn) or self._skill
        role, text = turn.get("role"), str(turn.get("text") or "")
        calls = _calls(turn)
        if role == "user":
            self._asked(text)
        elif role == "assistant":
            self._answered(text, calls, turn)
        elif role == "tool":
            self._returned(text, calls, turn)

    def _asked(self, text: str) -> None:
        # What a program says in a person's place begins with a mark.
        if text.strip() and not text.lstrip().startswith("<"):
            self._task = text
        self._open, self._last, self._answer, self._final = [], None, None, None

    def _answered(self, text: str, calls: list[Action], turn: Mapping[str, object]) -> None:
        if calls:
            self._open += calls
            self._actions += calls
            self._answer, self._final = None, False
        elif text.strip():
            final = turn.get("final")
            self._answer, self._final = _both_ends(text), final if isinstance(final, bool) else None
            time = turn.get("time")
            self._answered_at = time if isinstance(time, datetime) and time.tzinfo is not None else None

    def _returned(self, text: str, calls: list[Action], turn: Mapping[str, object]) -> None:
        failed = turn.get("failed")
        if failed is None and not text:
            return  # it is still at it
        for call in calls:
            self._close(call)
            self._last = call
            self._work = after(self._work, call, failed if isinstance(failed, bool) else None)
        if not calls:
            self._open = []
        self._answer, self._final = None, False

    def _close(self, call: Action) -> None:
        same = [each for each in self._open if each == call] or [each for each in self._open if each.tool == call.tool]
        if same:
            self._open.remove(same[0])


def after(work: Work, call: Action, failed: bool | None) -> Work:
    """Return what has become of the files after a call was answered."""
    kind = call.kind
    if kind is Kind.EDIT:
        return work if failed else Work(edited=True)
    if kind is Kind.DELEGATE or (kind is Kind.OTHER and may_change_files(call.tool)):
        # Nobody has told what was done.
        return structs.replace(work, validated=False, looked_over=False)
    return _after_command(work, call.detail, failed) if kind is Kind.SHELL else work


def _after_command(work: Work, command: str | None, failed: bool | None) -> Work:
    if command is None:
        return structs.replace(work, validated=False, looked_over=False)
    if commands.edits(command) and not failed:
        work = Work(edited=True)
    elif commands.may_edit(command):
        work = structs.replace(work, validated=False, looked_over=False)
    changed = commands.may_edit(command)
    if commands.may_validate(command):
        proven = failed is False and not changed and commands.validates(command)
        work = structs.replace(work, validated=_known(proven, failed, work.validated))
    if commands.may_look_over(command):
        proven = failed is False and not changed and commands.looks_over(command)
        work = structs.replace(work, looked_over=_known(proven, failed, work.looked_over))
    return structs.replace(work, committed=True) if commands.commits(command) and not failed else work


def _known(proven: bool, failed: bool | None, before: bool | None) -> bool | None:
    """A check that went wrong undoes one that went well; what is not known leaves things open."""
    if proven:
        return True
    if failed:
        return False
    return before or None


def _both_ends(text: str) -> str:
    """What an answer begins with says what was done, and what it ends with what is asked."""
    return text if len(text) <= 2 * _ANSWER else f"{text[:_ANSWER]}\n…\n{text[-_ANSWER:]}"


def _calls(turn: Mapping[str, object]) -> list[Action]:
    names = str(turn.get("tool") or "").split(", ") if turn.get("tool") else []
    details = str(turn.get("detail") or "").split("\n")
    if len(details) != len(names):
        details = [""] * len(names)
    return [Action(tool=name, detail=detail[:_DETAIL] or None) for name, detail in zip(names, details, strict=True)]
