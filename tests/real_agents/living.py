"""Real agents under the eyes of the daemon: what each is asked for, and what is to be seen of it.

    company = Company(stage, daemon, ("claude", …))       # started beside each other, and at rest
    company.type({each: each.errand.prompt for each in company.members})
    company.await_word("attention(permission)")

The model holds every answer back until it is let go: a state lasts until it was seen, however slow the machine is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import NamedTuple

from perdure.live.weigh import UNREAD
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Run
from perdure.model.screen import State
from tests.acceptance.watching import Watching
from tests.real_agents.coming_back import live_at_home
from tests.real_agents.kit import PATIENCE, Agent, Stage
from tests.real_agents.seeing import wait_until

#: Three things an agent does that are known by something: it works, it asks, and a turn of it is over.
WORKS, ASKS, OVER = "busy", "asks", "over"
#: How long after it was told of, a form may come to be seen.
_LATE = timedelta(seconds=3)
_WORDS = {"busy": WORKS, "attention(permission)": ASKS, "attention(question)": ASKS, "attention(done)": OVER}


class Errand(NamedTuple):
    """What an agent is asked for."""

    #: Something it needs leave for.
    prompt: str
    #: The keys that give it leave.
    allow: Sequence[str] = ("Enter",)
    #: Something that makes it put a question; "": it has none.
    question: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}


#: What a command waits for whose agent does not ask the model again once it has run. In the agents' directory.
SEEN = "seen"


def _command(words: str = "touch asked", orders: str = "") -> str:
    return f"[[hold]] {orders}[[tool={words}]] run it"


def _question(tool: str, value: object) -> str:
    return f"[[hold]] [[call={tool} {json.dumps(value)}]] ask me"


_OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
_COLOUR = {"question": "Which colour?", "header": "Colour", "options": _OPTIONS}
_FORM = {"properties": {"colour": {"type": "string", "enum": ["Red", "Blue"]}}, "required": ["colour"]}
_PLAIN = {"question": "Which colour?"}

#: Codex and Qwen have a tool for questions too, but offer it in another mode, or when it is searched for.
ERRANDS: Mapping[str, Errand] = {
    "claude": Errand(
        _command(),
        question=_question("AskUserQuestion", {"questions": [{**_COLOUR, "multiSelect": False}]}),
        args=("--permission-mode", "default"),
    ),
    "codex": Errand(_command(orders="[[escalate]] "), ("y",)),
    "gemini": Errand(
        _command(),
        question=_question("ask_user", {"questions": [{**_COLOUR, "type": "choice"}]}),
        args=("--approval-mode", "default"),
    ),
    "qwen": Errand(_command(), args=("--approval-mode", "default")),
    "opencode": Errand(_command(), question=_question("question", {"questions": [_COLOUR]})),
    "copilot": Errand(
        _command(), ("1",), _question("ask_user", {"message": "Which colour?", "requestedSchema": _FORM})
    ),
    "cline": Errand(_command(), ("y",), _question("ask_question", {**_PLAIN, "options": ["Red", "Blue"]})),
    "goose": Errand(_command(), env={"GOOSE_MODE": "approve"}),
    "hermes": Errand(
        _command("rm -rf /nowhere/at/all"),
        question=_question("clarify", {**_PLAIN, "choices": ["Red", "Blue"]}),
    ),
    # Its model writes down what is to be run, and it asks about that.
    "aider": Errand(_command(f"until test -e {SEEN}; do sleep 0.1; done"), args=("--edit-format", "diff")),
}

#: By what it is known, where that is not the screen alone. A source may be overtaken by another that says the same.
OWN_WORD: Mapping[str, Mapping[str, str]] = {
    "claude": {
        WORKS: r"(registry:busy|screen:claude\.busy)",
        ASKS: r"registry:(permission prompt|input needed)",
        OVER: r"registry:idle",
    },
    "copilot": {WORKS: r"(screen:copilot\.busy|registry:)", ASKS: r"(screen:copilot\.attention|registry:permission)"}
    | {OVER: r"(screen:copilot\.idle|registry:assistant\.turn_end)"},
    "cline": {WORKS: r"(screen:cline\.busy|registry:running)", OVER: r"(screen:cline\.idle|registry:idle)"},
    "goose": {WORKS: r"(screen:goose\.busy|registry:asked)", OVER: r"(screen:goose\.idle|registry:answered)"},
}
#: The same once hooks are installed. Codex has none, and only shows its thread. That leave was given, screens tell.
BY_HOOK: Mapping[str, Mapping[str, str]] = {
    "gemini": {WORKS: r"(hook:BeforeAgent|screen:)", ASKS: r"hook:Notification", OVER: r"hook:AfterAgent"},
    "qwen": {WORKS: r"(hook:UserPromptSubmit|screen:)", ASKS: r"hook:(PermissionRequest|Notification)"}
    | {OVER: r"hook:(Stop|Notification)"},
    "opencode": {WORKS: r"hook:", ASKS: r"hook:(permission|question)\.asked", OVER: r"hook:session\.status"},
    "copilot": {
        WORKS: r"(hook:|registry:|screen:)",
        ASKS: r"(hook:Notification|registry:permission\.requested|screen:)",
    }
    | {OVER: r"(hook:Stop|registry:assistant\.turn_end)"},
    "hermes": {WORKS: r"(hook:on_session_start|screen:)", ASKS: r"(hook:pre_approval_request|screen:)"}
    | {OVER: r"hook:on_session_end"},
}


def cause_of(name: str, word: str, *, hooks: bool) -> str | None:
    """Return the pattern a state's cause has to begin with; None for a state that has no cause of the agent's own."""
    what = _WORDS.get(word)
    if what is None:
        return None
    shown = {WORKS: "busy", ASKS: "attention", OVER: "idle"}[what]
    own = {**OWN_WORD.get(name, {}), **(BY_HOOK.get(name, {}) if hooks else {})}
    # What Perdure itself typed has made it busy before anybody else can tell.
    typed = "input$|" if what is WORKS else ""
    return typed + own.get(what, rf"screen:{name}\.{shown}")


class Moment(NamedTuple):
    """An agent has come into a state."""

    word: str
    cause: str


class Member:
    """An agent with an errand, and the run it is."""

    def __init__(self, agent: Agent, run: str) -> None:
        self.agent = agent
        self.run = run
        self.name = agent.program.name
        self.errand = ERRANDS[self.name]
        #: The number of the last event that was waited for.
        self.after = 0


class Company:
    """Agents beside each other, watched by a daemon. All of them are at rest once it is made."""

    def __init__(self, stage: Stage, daemon: Watching, names: Iterable[str]) -> None:
        self.stage, self.daemon = stage, daemon
        self._changes: list[StoredEvent] = []
        agents = [stage.start(name, *ERRANDS[name].args, env=ERRANDS[name].env, ready="") for name in names]
        self.members = [Member(agent, self._run_of(agent)) for agent in agents]
        self.wait_until(self._is_at_rest, self.members, "to be at rest", timeout=3 * PATIENCE)

    @property
    def asking(self) -> list[Member]:
        """Those who can put a question."""
        return [each for each in self.members if each.errand.question]

    def _run_of(self, agent: Agent) -> str:
        found: list[str] = []

        def look() -> bool:
            found[:] = [run.id for run in self.daemon.runs() if run.pane == agent.pane]
            return bool(found)

        wait(look, lambda: f"no run in the pane of {agent.program.name}\n{self.daemon.log}")
        return found[0]

    # What they do

    def type(self, prompts: Mapping[Member, str]) -> None:
        """Type something into each, all at once."""
        with ThreadPoolExecutor(max_workers=len(prompts)) as pool:
            list(pool.map(lambda member: member.agent.type(prompts[member]), prompts))

    def press(self, keys: Mapping[Member, Sequence[str]]) -> None:
        """Press keys in each, once it shows what is to be answered. A form takes no answer in its first moment."""
        for member in keys:
            wait_until(member.agent, State.ATTENTION)
        time.sleep(1)
        for member, names in keys.items():
            member.agent.keys(*names)

    # What is seen of them

    def runs(self) -> dict[str, Run]:
        """Return every run whose pane is there, by its id."""
        return {run.id: run for run in self.daemon.runs()}

    def _is_at_rest(self, member: Member) -> bool:
        found = [each for each in self._of(member) if _is_rest(each.event)]
        member.after = found[0].seq if found else 0
        return bool(found)

    def await_word(self, word: str, members: Iterable[Member] | None = None, *, timeout: float = PATIENCE) -> None:
        """Wait until each has come into a state, after the one that was last waited for."""

        def has_come(member: Member) -> bool:
            found = [each for each in self._of(member) if each.seq > member.after and each.event.data["to"] == word]
            member.after = found[0].seq if found else member.after
            return bool(found)

        self.wait_until(has_come, self.members if members is None else members, f"to be {word}", timeout)

    def wait_until(
        self, is_it: Callable[[Member], bool], members: Iterable[Member], what: str = "", timeout: float = PATIENCE
    ) -> None:
        """Wait until something has been so of each."""
        left = list(members)

        def look() -> bool:
            self._read()
            left[:] = [member for member in left if not is_it(member)]
            return not left

        wait(look, lambda: "\n".join([f"waited in vain {what}:", *map(self.told, left), self.daemon.log]), timeout)

    def timeline(self, member: Member, after: int) -> list[Moment]:
        """Return the states an agent came into behind a number.

        On a busy machine nothing may be to be read for long, and a hook may be long before the form it tells of: that
        nobody could tell is left out, and what is asked twice for that is asked once.
        """
        changes = [each.event for each in self._of(member) if each.seq > after]
        told = _asked_once([each for each in changes if each.data["cause"] != UNREAD])
        return [Moment(str(each.data["to"]), str(each.data["cause"])) for each in told]

    def entered(self, member: Member, after: int) -> list[Mapping[str, object]]:
        """Return the conversations that a run is known for certain to have gone on to, behind a number."""
        return [each.data for each in self.identities(member, after) if each.data["certain"]]

    def identities(self, member: Member, after: int) -> list[Event]:
        """Return how the conversation of a run was known otherwise than before, behind a number."""
        changes = [each.event for each in self.daemon.events(after, EventKind.IDENTITY_CHANGED)]
        return [each for each in changes if each.run == member.run]

    def told(self, member: Member) -> str:
        """What is known of one, for whoever reads why a test failed."""
        events = [each.event for each in self._of(member)]
        changes = [f"{event.at:%T} {event.data['to']} {event.data['cause']}" for event in events]
        return "\n".join([member.name, *changes, str(self.runs().get(member.run)), self._shown(member)])

    def _shown(self, member: Member) -> str:
        return str(member.agent) if self.stage.tmux.alive else "(no server)"

    def _read(self) -> None:
        last = self._changes[-1].seq if self._changes else 0
        self._changes += self.daemon.events(last, EventKind.STATE_CHANGED)

    def _of(self, member: Member) -> list[StoredEvent]:
        return [each for each in self._changes if each.event.run == member.run]


def _is_rest(event: Event) -> bool:
    """Whether it is an agent that has come to rest, and not the shell before it."""
    return event.data["to"] == "idle" and not str(event.data["cause"]).startswith("process:")


def _asked_once(changes: Sequence[Event]) -> list[Event]:
    found: list[Event] = []
    for each in changes:
        is_again = len(found) > 1 and found[-2].data["to"] == each.data["to"] and _WORDS.get(each.data["to"]) == ASKS
        if is_again and each.at - found[-1].at < _LATE and found[-1].data["to"] == "busy":
            found.pop()
        else:
            found.append(each)
    return found


def wait(condition: Callable[[], object], why: Callable[[], str], timeout: float = PATIENCE) -> None:
    """Wait until something is so; `why` says what is wrong when it does not become so."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, why()
        time.sleep(0.2)


def set_up(stage: Stage, names: Sequence[str], *, hooks: bool) -> None:
    """Write the files of these agents and of the user's shell, and install the hooks of all that have some."""
    live_at_home(stage)
    for name in names:
        stage.configure(name)
    # How quickly tmux answers on a machine full of agents is not what is tested.
    stage.write(".config/perdure/config.toml", "[tmux]\ntimeout_seconds = 30\n")
    # It makes its own directory only when it is first started.
    stage.write(".claude/settings.json", "{}")
    if hooks:
        stage.perdure.ok("hooks", "install")
