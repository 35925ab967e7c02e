"""Goose: sessions in one database for all its processes, and a log of its own that each process holds open.

A process is tied to its session by that log, once something was said. Before that there is the command line, and the
sessions that began with the process in its directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from os.path import basename, join, splitext

from perdure.agents._case import About, Candidate, Case
from perdure.agents._json import one_line
from perdure.agents._program import locate
from perdure.agents._spec import Ordinary
from perdure.agents.goose import store
from perdure.agents.goose.log import Log, find_log, sessions
from perdure.agents.goose.store import Session
from perdure.model.agent import ID, AgentSpec
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.observation import Reading
from perdure.model.process import Command, Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView, Sighting

#: Those of `session` and of `run`, which begins with a prompt. What only `run` takes does not come back: the session
#: remembers its model and its recipe itself.
_KEPT = (
    "--debug",
    "--max-tool-repetitions <number>",
    "--max-turns <number>",
    "--container <id>",
    "--with-extension <command>",
    "--with-streamable-http-extension <url>",
    "--with-builtin <name>",
    "--no-profile",
)
_DROPPED = (
    "-n, --name <name>",
    "--session-id <id>",
    "--path <path>",
    "-r, --resume",
    "--fork",
    "--history",
    "-h, --help",
    "-V, --version",
    "-i, --instructions <file>",
    "-t, --text <text>",
    "--recipe <recipe>",
    "--system <text>",
    "--params <pair>",
    "--sub-recipe <recipe>",
    "--explain",
    "--render-recipe",
    "-s, --interactive",
    "--no-session",
    "-q, --quiet",
    "--output-format <format>",
    "--provider <provider>",
    "--model <model>",
)
_RESUME = ("session", "--resume", "--session-id", ID, "--history")
_ENVIRONMENT = """
    GOOSE_PATH_ROOT GOOSE_PROVIDER GOOSE_MODEL GOOSE_MODE GOOSE_PLANNER_PROVIDER GOOSE_PLANNER_MODEL
    GOOSE_SUBAGENT_MODEL GOOSE_RECIPE_PATH GOOSE_RECIPE_GITHUB_REPO
    OPENAI_HOST OPENAI_BASE_URL OPENAI_BASE_PATH OPENAI_ORGANIZATION ANTHROPIC_HOST OLLAMA_HOST GOOGLE_HOST
    AZURE_OPENAI_ENDPOINT AZURE_OPENAI_DEPLOYMENT_NAME AZURE_OPENAI_API_VERSION
    DATABRICKS_HOST GCP_PROJECT_ID GCP_LOCATION AWS_PROFILE AWS_REGION
    """.split()

SPEC = AgentSpec(
    binaries=("goose",),
    begin=("goose", "session"),
    packages=("/@aaif/goose-binary-",),
    environment=tuple(_ENVIRONMENT),
    id=r"\d{8}_\d+",
    keep=_KEPT,
    drop=_DROPPED,
    resume=_RESUME,
    # One in which nothing was said can be resumed like any other.
    fresh=_RESUME,
    signs=(
        r"^ +__\( O\)>  ",
        r"^  [━╌]{10,} \d+% \S+/\S+$",
        r"^  ⏱ \d",
        r"^ Enter to send · Ctrl\+J newline",
        r"^[◆◇]  \S",
        r"^[◐◓◑◒]  .+\.\.\.  \(Ctrl\+C to interrupt\)",
        r"^  ▸ \w",
    ),
)
#: The subcommands of `goose session` that list, export and so on.
_ABOUT_SESSIONS = frozenset({"list", "remove", "export", "import", "diagnostics", "help"})
_ONE_OFF = frozenset({"--help", "--version"})
#: The name of a session nobody named, until the model has.
_NAMELESS = "CLI Session"
#: The database knows whole seconds, and clocks are read twice.
_SLACK = timedelta(seconds=2)


class Goose(Ordinary):
    """Goose's own command line; its `goose-tui` and desktop keep sessions of other kinds."""

    def __init__(self) -> None:
        super().__init__("goose", SPEC)

    # -- its command line ---------------------------------------------------------------------------------------

    def score(self, process: Process) -> float:
        """Return 0 for every subcommand but `session` and an interactive `run`. A database tool shares the name."""
        score = locate(self.program, process)[0]
        arguments = self.arguments(process)
        if not arguments or not score:
            return score
        words = [argument.values[0] for argument in arguments if argument.name is None]
        options = {argument.name for argument in arguments}
        if options & _ONE_OFF or not words or arguments[0].name is not None:
            return 0.0
        if words[0] in ("session", "s"):
            return 0.0 if _ABOUT_SESSIONS.intersection(words[1:2]) else score
        return score if words[0] == "run" and "--interactive" in options else 0.0

    def directory(self, identity: Identity, launched: Command) -> str:
        """Return where the session lives: from elsewhere goose asks where to go on, and waits."""
        return identity.home or launched.cwd

    # -- its conversations --------------------------------------------------------------------------------------

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the session by the process's own log, by the command line, then those that began with it."""
        return _Search(self, sighting.process, host).identities()

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the database says now."""
        path = store.database(process, host)
        session = store.find(path, identity.conversation, host) if identity.conversation else None
        if session is None:
            return AgentDetails()
        return AgentDetails(
            title=one_line(session.name) if session.name != _NAMELESS else None,
            task=one_line(store.last_prompt(path, session.id, host)),
            model=session.model,
            provider=session.provider,
            transcript=path,
            context_used=session.tokens,
            context_limit=session.context_limit,
            began_at=session.created_at,
            last_activity_at=session.updated_at,
        )

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the session's turns, then those of the sub-agents it started."""
        path = transcript or join(host.home, store.USUAL_HOME, store.DATABASE)
        return store.turns(path, conversation, host)

    # -- its screen ---------------------------------------------------------------------------------------------

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what the bottom of the screen says, None when it cannot tell."""
        from perdure.agents.goose.screen import read_screen  # dear, and nothing a save needs

        return read_screen(self.name, screen)

    # -- what it says itself ------------------------------------------------------------------------------------

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return who has the last word in the session that its own log names."""
        from perdure.agents.goose.told import told  # nothing a save needs

        return told(process, host)

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return its log, and the database."""
        from perdure.agents.goose.told import telling  # nothing a save needs

        return telling(process, host)


class _Search:
    """One look at one process."""

    def __init__(self, goose: Goose, process: Process, host: HostView) -> None:
        self._goose = goose
        self._process = process
        self._host = host
        self._database = store.database(process, host)
        self._case = Case(goose.name, self._about, profile=store.profile(process, host))
        self._options = {each.name: each.values for each in goose.arguments(process) if each.name is not None}
        self._log = find_log(process, host)
        self._found: dict[str, Session | None] = {}

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        said = (
            next((each for each in sessions(self._log, self._host) if self._is_own(each)), None) if self._log else None
        )
        alone = self._log is not None and self._log.launches == 1
        self._case.note(_about_log(self._log, said))
        if said is not None and alone:
            return self._case.closed([self._case.claim(said, Evidence.OPEN_FILE, certain=True)])
        named, sure = self._named()
        if named is None:
            self._case.note("the command line names no session")
            return self._case.closed(self._case.guesses(self._begun()))
        found = self._find(named)
        # No command of goose leads to another session, so one that was named by its id is the one; a name may have gone on
        # to another since. A log of its own that tells of no session: nothing was said since it started.
        stays = alone or "--name" not in self._options
        others = [] if stays else [each for each in self._candidates(self._touched()) if each[1] != named]
        written = found.updated_at if found else None
        return self._case.closed(self._case.launched(named, others, lost=not (found and sure), written_at=written))

    def _named(self) -> tuple[str | None, bool]:
        """The session the command line names, and whether it can only be that one."""
        options = self._options
        # A fork goes on in a session of its own; and without --resume every session is a new one.
        if "--resume" not in options or "--fork" in options:
            return None, False
        if options.get("--name"):
            called = store.called(self._database, options["--name"][-1], self._host)
            return (called[0].id, len(called) == 1) if called else (None, False)
        path = splitext(basename((options.get("--path") or ("",))[-1]))[0]
        named = (options.get("--session-id") or (path,))[-1]
        return (named, True) if self._goose.is_conversation(named) else (None, False)

    def _begun(self) -> list[Candidate]:
        """Sessions this process may have begun with: the nearest to its start first, and before these one of its name."""
        touched = self._touched()
        if "--resume" in self._options and "--fork" not in self._options:
            return self._candidates(sorted(touched, key=lambda each: str(each.updated_at), reverse=True))
        earliest = self._process.started_at - _SLACK
        begun = [each for each in touched if each.created_at is not None and each.created_at >= earliest]
        name = (self._options.get("--name") or (None,))[-1]
        return self._candidates(sorted(begun, key=lambda each: name is not None and each.name != name))

    def _touched(self) -> list[Session]:
        """Sessions in this process's directory that were begun, resumed or written to since it started."""
        cwd = self._process.cwd
        if cwd is None:
            return []
        here = self._host.physical(cwd)
        touched = store.touched_since(self._database, self._process.started_at - _SLACK, self._host)
        return [each for each in touched if each.directory and self._host.physical(each.directory) == here]

    def _candidates(self, found: Sequence[Session]) -> list[Candidate]:
        return [(each.updated_at, each.id) for each in found if each.updated_at is not None]

    def _find(self, session: str) -> Session | None:
        if session not in self._found:
            self._found[session] = store.find(self._database, session, self._host)
        return self._found[session]

    def _is_own(self, session: str) -> bool:
        found = self._find(session)
        return found is not None and found.own

    def _about(self, conversation: str, evidence: Evidence) -> About:
        found = self._find(conversation)
        directory, cwd = found.directory if found else None, self._process.cwd
        elsewhere = directory and (cwd is None or self._host.physical(directory) != self._host.physical(cwd))
        return About(
            prompted=store.is_prompted(self._database, conversation, self._host),
            home=directory if elsewhere else None,
        )


def _about_log(log: Log | None, said: str | None) -> str:
    if log is None:
        return "no log of this process can be read"
    if log.launches != 1:
        return "its log is shared with another goose that started in the same second"
    return "the log it holds open names the session" if said else "its log names no session: nothing was said yet"


ADAPTER: AgentAdapter = Goose()
