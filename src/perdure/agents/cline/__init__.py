"""Cline: recognised, identified, described, read and brought back.

Its first process starts a hub below itself, which stays when the pane goes and runs the sessions of all that come later.
So nothing in a session's own file tells whose pane it is in; the log and the title do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from os.path import join

from perdure.agents._case import About, Candidate, Case
from perdure.agents._json import one_line
from perdure.agents._spec import Ordinary
from perdure.agents.cline import sessions
from perdure.agents.cline.sessions import Entered, Session
from perdure.model.agent import ID, AgentSpec
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView, Sighting

_KEPT = (
    "-p, --plan",
    # It approves everything unless told otherwise, so this must come back as it was.
    "--auto-approve <boolean>",
    # It does not go there itself, so what is relative stays right.
    "-c, --cwd <path>",
    "--thinking [level]",
    "--compaction <mode>",
    "-P, --provider <id>",
    "-k, --key <api-key>",
    "-m, --model <model-id>",
    "-s, --system <system-prompt>",
    "--retries [value]",
    "-t, --timeout <seconds>",
    "--config <path>",
    "--data-dir <path>",
    "--hooks-dir <path>",
    "-v, --verbose",
)
#: A worktree is made anew every time.
_DROPPED = (
    "-i, --tui",
    "--id <session-id>",
    "--worktree",
    "-V, --version",
    "-h, --help",
    "--json",
    "-z, --zen",
    "--acp",
    "--update",
    "--kanban",
    "--cline-hub-daemon",
    "--host <host>",
    "--port <port>",
    "--pathname <path>",
)
_ONE_OFF = "--version --help --json --zen --acp --update --kanban --cline-hub-daemon".split()
_ENVIRONMENT = """
    CLINE_DIR CLINE_DATA_DIR CLINE_SESSION_DATA_DIR CLINE_DB_DATA_DIR CLINE_TEAM_DATA_DIR CLINE_LOG_PATH
    CLINE_PROVIDER_SETTINGS_PATH CLINE_GLOBAL_SETTINGS_PATH CLINE_MCP_SETTINGS_PATH CLINE_SANDBOX
    CLINE_ENVIRONMENT CLINE_API_BASE_URL CLINE_PROVIDER CLINE_MODEL CLINE_HUB_ADDRESS CLINE_HUB_PORT
    """.split()

SPEC = AgentSpec(
    binaries=("cline", ".cline"),
    begin=("cline", "--tui"),
    packages=("/@cline/cli-", "/node_modules/cline/"),
    environment=tuple(_ENVIRONMENT),
    id=sessions.ID,
    keep=_KEPT,
    drop=_DROPPED,
    not_agents=tuple(_ONE_OFF),
    resume=("--tui", "--id", ID),
    # There is no way to choose an id.
    fresh=("--tui",),
    signs=(
        r"title:^(?:> |Cline$)",
        r"[○●] Plan [○●] Act\b",
        r"^ +(?:⏵⏵ )?Auto-approve all (?:en|dis)abled",
        r"^\u276f Ask anything\.\.\.",
        r"^ Cline (?:needs permission|is asking a question)",
        r"^ [⠀-⣿] Thinking\.\.\. \(esc to cancel\)",
    ),
)
#: What the terminal is called before anything was said, and what stands before the last prompt after that.
_HOME_TITLE, _PROMPT_TITLE = "Cline", "> "
_CUT = "..."
_PASTED = r"\[(.*)\.\.\. Pasted \+\d+ lines\]"
#: How many sessions are looked at.
_MOST_READ = 500
_SLACK = timedelta(seconds=2)


class Cline(Ordinary):
    """The Cline CLI's terminal interface."""

    def __init__(self) -> None:
        super().__init__("cline", SPEC)

    def score(self, process: Process) -> float:
        """Return 0 for the hub, for subcommands, and for a prompt that is answered and that is all."""
        score = super().score(process)
        arguments = self.arguments(process) if score else []
        words = [argument for argument in arguments if argument.name is None]
        return 0.0 if words and not any(argument.name == "--tui" for argument in arguments) else score

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the identities by log and title, by a session's own file, by command line and by guess."""
        return _Search(self, sighting, host).identities()

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the session's files say now."""
        home = sessions.sessions_home(process, self.options(process), host)
        session = sessions.find(home, identity.conversation, host) if identity.conversation else None
        if session is None:
            return AgentDetails()
        path = sessions.messages_path(home, session.id)
        return AgentDetails(
            title=one_line(session.title),
            task=one_line(sessions.last_prompt(path, host) or session.prompt),
            model=one_line(session.model),
            provider=one_line(session.provider),
            branch=one_line(session.branch),
            transcript=path if host.size(path) is not None else None,
            companions=tuple(filter(None, (join(home, session.id, f"{session.id}.json"), session.compaction))),
            parent=session.parent,
            version=one_line(session.version),
            context_used=sessions.context_used(path, host),
            began_at=session.started_at,
            last_activity_at=host.modified_at(path),
        )

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the main conversation's turns, then those of its sub-agents."""
        if transcript is None:
            if not self.is_conversation(conversation):
                return
            transcript = sessions.messages_path(join(host.home, sessions.USUAL_SESSIONS), conversation)
        yield from sessions.turns(transcript, host)

    def has_turns(self, transcript: str, host: HostView) -> bool:
        """Return whether there is any message in the file."""
        return sessions.has_messages(transcript, host)

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what box, blocks and questions say, None when they cannot tell."""
        from perdure.agents.cline.screen import read_screen  # dear, and nothing a save needs

        return read_screen(self.name, screen)

    def options(self, process: Process) -> dict[str, str]:
        """Return the values a command line gives to options."""
        return {each.name: each.values[-1] for each in self.arguments(process) if each.name and each.values}

    # -- what it says itself ------------------------------------------------------------------------------------

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return the status of the session that the log says it is in."""
        from perdure.agents.cline.told import told  # nothing a save needs

        return told(process, self.options(process), host)

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return the file of its session, and the log."""
        from perdure.agents.cline.told import telling  # nothing a save needs

        return telling(process, self.options(process), host)


class _Search:
    """One look at one process."""

    def __init__(self, cline: Cline, sighting: Sighting, host: HostView) -> None:
        self._cline = cline
        self._process = sighting.process
        self._title = sighting.title
        #: It has taken its title back.
        self._ends = sighting.title == "" and sighting.at is not None
        self._host = host
        self._options = cline.options(sighting.process)
        self._home = sessions.sessions_home(sighting.process, self._options, host)
        self._case = Case(cline.name, self._about, profile=sessions.profile(self._home, host))

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        found = self._logged() or self._registered() or self._launched_or_guessed()
        if self._title == _HOME_TITLE:
            # Whatever it was in before, nothing was said yet in the one that is in sight now.
            self._case.left.update(session.id for session in self._written())
        elif self._title.startswith(_PROMPT_TITLE):
            self._case.left.update(session.id for session in self._written() if self._is_out_of_sight(session))
        return self._case.closed(found)

    # -- what this process does now -----------------------------------------------------------------------------

    def _logged(self) -> list[Identity]:
        data = sessions.data_home(self._process, self._options, self._host)
        entered = sessions.entered(self._process, data, self._host)
        if entered is None or not self._cline.is_conversation(entered.session):
            self._case.note("the log does not tell of this process")
            return []
        newer = self._newer(entered)
        why_not = self._why_not(entered)
        if why_not is None and newer:
            why_not = "a session has begun since of which the log does not tell yet"
        self._case.note(why_not or "the log names the session, and the title agrees")
        own = self._case.claim(entered.session, self._evidence(why_not is None), certain=why_not is None)
        return [own, *(self._case.claim(each, Evidence.GUESS, certain=False) for each in newer)]

    def _evidence(self, certain: bool) -> Evidence:
        """What the log or a session's file is worth: once the program has taken its title back, to end, no more than a
        guess that says nothing against what was known before."""
        return Evidence.GUESS if self._ends and not certain else Evidence.REGISTRY

    def _why_not(self, entered: Entered) -> str | None:
        """Why the session the log names may not be the one in sight. The log hears of a new one with its first prompt."""
        session = sessions.find(self._home, entered.session, self._host)
        if session is None:
            # Nothing was said yet; and what has not begun cannot be left for another.
            return "the log says that it was left" if entered.stopped else None
        if self._title == _HOME_TITLE:
            return "the log names a session, but the title says that nothing was said yet in the one in sight"
        if not self._title.startswith(_PROMPT_TITLE):
            return "the log names a session, and the title does not tell whether it is in sight"
        if entered.stopped:
            return "the log says that it was left"
        if session.status in ("running", "pending") or self._is_titled(session):
            return None
        self._case.left.add(entered.session)
        return "the log names a session, but the title has another prompt"

    def _newer(self, entered: Entered) -> list[str]:
        """Sessions after the log's last word that nobody was seen to begin, and that the title may be of."""
        names = (name for name in self._host.names(self._home) if self._cline.is_conversation(name))
        since = [name for name in names if (began := sessions.began_at(name)) is not None and began > entered.at]
        unknown = sorted(set(since) - entered.others)
        found = {name: sessions.find(self._home, name, self._host) for name in unknown}
        return [name for name, session in found.items() if session is None or self._is_titled(session)]

    def _is_titled(self, session: Session) -> bool:
        """Whether the title is the session's last prompt: its first line, cut when long, or a word for a long paste."""
        said = sessions.last_prompt(sessions.messages_path(self._home, session.id), self._host) or session.prompt or ""
        shown = " ".join(self._title.removeprefix(_PROMPT_TITLE).split())
        pasted = re.fullmatch(_PASTED, shown)
        if pasted:
            return " ".join(said.split()).startswith(pasted[1].rstrip())
        line = " ".join(said.partition("\n")[0].split())
        return shown == line or (shown.endswith(_CUT) and line.startswith(shown.removesuffix(_CUT).rstrip()))

    def _is_out_of_sight(self, session: Session) -> bool:
        """Whether the title is another's last prompt. One at work may have been asked this moment."""
        return session.status not in ("running", "pending") and not self._is_titled(session)

    def _registered(self) -> list[Identity]:
        """The open session that this very process runs, without a hub. One that is left is closed at once."""
        own = [each for each in self._written() if each.pid == self._process.pid and self._began_here(each)]
        if len(own) != 1 or self._title == _HOME_TITLE:
            self._case.note("no session has this process's number, or not one alone")
            return []
        self._case.note("one open session has this process's number, and began after it")
        in_sight = self._title.startswith(_PROMPT_TITLE) and not self._is_out_of_sight(own[0])
        if not in_sight:
            self._case.note("the title does not say that it is in sight")
        return [self._case.claim(own[0].id, self._evidence(in_sight), certain=in_sight)]

    def _began_here(self, session: Session) -> bool:
        began = session.started_at
        return session.is_open and began is not None and began >= self._process.started_at - _SLACK

    # -- where it began -----------------------------------------------------------------------------------------

    def _launched_or_guessed(self) -> list[Identity]:
        named = self._options.get("--id", "")
        others = [each for each in self._candidates() if each[1] != named]
        if not self._cline.is_conversation(named):
            self._case.note("the command line names none")
            return self._case.guesses(others)
        session = sessions.find(self._home, named, self._host)
        path = sessions.messages_path(self._home, named)
        gone = session is not None and self._title == _HOME_TITLE
        elsewhere = session is not None and self._title.startswith(_PROMPT_TITLE) and self._is_out_of_sight(session)
        if elsewhere:
            self._case.note("the title has another prompt than the session")
        return self._case.launched(
            named,
            others,
            gone=gone,
            lost=session is None,
            doubtful=elsewhere,
            written_at=self._host.modified_at(path),
        )

    def _candidates(self) -> list[Candidate]:
        """Open sessions of this directory that were written to since the process began, the one in the title first."""
        found = []
        for session in self._written():
            at = self._host.modified_at(sessions.messages_path(self._home, session.id))
            if at is not None and at >= self._process.started_at and session.is_open and self._is_here(session):
                found.append((not self._is_titled(session), (at, session.id)))
        found.sort(key=lambda each: each[1], reverse=True)
        return [candidate for _, candidate in sorted(found, key=lambda each: each[0])]

    def _written(self) -> list[Session]:
        names = sorted(filter(self._cline.is_conversation, self._host.names(self._home)), reverse=True)
        found = (sessions.find(self._home, name, self._host) for name in names[:_MOST_READ])
        return [session for session in found if session is not None]

    def _is_here(self, session: Session) -> bool:
        return self._elsewhere(session) is None

    def _elsewhere(self, session: Session) -> str | None:
        """Where a session lives, None when that is where the process is, or not told."""
        cwd = self._options.get("--cwd") or self._process.cwd
        if session.cwd is None or cwd is None:
            return None
        here = self._host.physical(join(self._process.cwd or "/", cwd))
        return None if self._host.physical(session.cwd) == here else session.cwd

    def _about(self, conversation: str, evidence: Evidence) -> About:
        session = sessions.find(self._home, conversation, self._host)
        if session is None:
            return About(prompted=False if evidence is Evidence.REGISTRY else None)
        return About(prompted=True, home=self._elsewhere(session))


ADAPTER: AgentAdapter = Cline()
