"""Aider: a conversation is a markdown file, and has no other name than the file's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from perdure.agents._case import About, Case
from perdure.agents._options import Grammar
from perdure.agents._program import head_of
from perdure.agents._spec import Ordinary
from perdure.agents.aider.history import branch, find_history, summary, turns
from perdure.agents.aider.options import KEPT, NOT_INTERACTIVE, ONCE
from perdure.model.agent import ID, AgentSpec
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Command, Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView, Sighting

_FILE, _RESTORE = "--chat-history-file", "--restore-chat-history"
_ENVIRONMENT = """
    AIDER_CHAT_HISTORY_FILE AIDER_INPUT_HISTORY_FILE AIDER_LLM_HISTORY_FILE AIDER_RESTORE_CHAT_HISTORY
    AIDER_MODEL AIDER_WEAK_MODEL AIDER_EDITOR_MODEL AIDER_EDIT_FORMAT AIDER_ARCHITECT
    AIDER_OPENAI_API_BASE AIDER_MODEL_SETTINGS_FILE AIDER_MODEL_METADATA_FILE AIDER_ENV_FILE
    OPENAI_API_BASE OPENAI_BASE_URL ANTHROPIC_API_BASE ANTHROPIC_BASE_URL OLLAMA_API_BASE GEMINI_API_BASE
    AZURE_API_BASE AZURE_API_VERSION OPENROUTER_API_BASE DEEPSEEK_API_BASE VERTEXAI_PROJECT VERTEXAI_LOCATION
    AWS_PROFILE AWS_REGION
    """.split()

SPEC = AgentSpec(
    binaries=("aider",),
    packages=("/site-packages/aider/",),
    scripts=("main.py", "__main__.py"),
    not_agents=NOT_INTERACTIVE,
    environment=tuple(_ENVIRONMENT),
    # An absolute path.
    id=r"(?s:/.*)",
    resume=(_FILE, ID, _RESTORE),
    fresh=(_FILE, ID),
    same_directory=True,
    signs=(
        r"^Aider v\d",
        r"^(?:Main model|Model): \S+ with .+ edit format",
        r"^Repo-map: using \d+ tokens",
        r"^Tokens: [\d.,]+k? sent, ",
        r"^(?:Readonly|Editable): ",
        r"^>$",
        r"^(?:[a-z-]+ multi|multi|architect|ask|code|context|(?:editor-|u)?diff|help|patch|whole)>(?: |$)",
        r"\(Y\)es/\(N\)o(?:/\([A-Z]\).*)? \[(?:Yes|No)\]:",
        r"^\s*[░█]+.*\bWaiting for \S+/",
        r"^litellm\.\w+Error: ",
    ),
)


@cache
def _grammar() -> Grammar:
    return Grammar(ONCE + KEPT, abbreviated=True)


@cache
def _once() -> frozenset[str]:
    return Grammar(ONCE).names


class Aider(Ordinary):
    """Aider in its terminal; the one in a browser is none of ours."""

    def __init__(self) -> None:
        super().__init__("aider", SPEC)

    # -- its command line ---------------------------------------------------------------------------------------

    @property
    def grammar(self) -> Grammar:
        """Its options."""
        return _grammar()

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        """Return the command that goes on with the file; all that was said in it goes before the model again."""
        conversation = identity.conversation
        if conversation is None or not self.is_conversation(conversation) or not launched.argv:
            return None
        head = head_of(self.program, launched.argv)[1]
        form = self.spec.resume if identity.prompted is not False else self.spec.fresh
        # Before the others, for after `--` they would be files.
        words = (word.replace(ID, conversation) for word in form)
        argv = (*launched.argv[:head], *words, *self.kept(launched.argv[head:]))
        return Command(argv=argv, cwd=self.directory(identity, launched), environ=launched.environ)

    def kept(self, words: Sequence[str]) -> list[str]:
        """Return the options that made it what it was, and the operands: they are files in the chat, not prompts."""
        result: list[str] = []
        # By what was read, not by what is in there: `--` may be an option's value as well.
        has_ended = False
        for argument in self.grammar.parse(words):
            if argument.name in _once() or not argument.complete:
                continue
            ends = argument.name is None and argument.words[0] == "--"
            result.extend(argument.words[1:] if ends and has_ended else argument.words)
            has_ended = has_ended or ends
        return result

    # -- its conversations --------------------------------------------------------------------------------------

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the file it writes, certain when it is this process's own."""
        process = sighting.process
        case = Case(self.name, lambda conversation, evidence: About(prompted=_is_prompted(conversation, host)))
        arguments = self.arguments(process)
        options = {each.name: (each.values or ("",))[-1] for each in arguments if each.name is not None}
        # Both forms of a switch have one name; which it was, its words tell.
        options |= {each.words[0]: "" for each in arguments if each.name is not None and not each.values}
        files = [each.values[0] for each in arguments if each.name is None]
        history = find_history(process, options, files, host)
        if history is None:
            case.note("the directory it runs in is not known, and so is its history file")
            return case.closed([])
        case.note(history.why)
        written = host.modified_at(history.path)
        if written is None:
            case.note("the history file is not there")
        certain = history.own and written is not None
        return case.closed([case.claim(history.path, Evidence.ARGV, certain=certain, written_at=written)])

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the end of the file says. Its times have no zone, and what it counts are several requests."""
        path = identity.conversation
        told = summary(path, host) if path is not None else None
        if path is None or told is None:
            return AgentDetails()
        provider = told.model.partition("/") if told.model else ("", "", "")
        return AgentDetails(
            task=told.task,
            model=told.model,
            provider=provider[0] if provider[1] else None,
            branch=branch(process.cwd, host) if process.cwd else None,
            transcript=path,
            version=told.version,
            last_activity_at=host.modified_at(path),
        )

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield what is in the file; with several aiders writing to it, what all of them said."""
        return turns(transcript or conversation, host)

    def has_turns(self, transcript: str, host: HostView) -> bool:
        """Return whether anybody asked for anything in the file: when its terminal goes it may write down just that."""
        return _is_prompted(transcript, host) is not False

    # -- its screen ---------------------------------------------------------------------------------------------

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what the bottom of the screen says, None when it cannot tell."""
        from perdure.agents.aider.screen import read_screen  # dear, and nothing a save needs

        return read_screen(self.name, screen)


def _is_prompted(path: str, host: HostView) -> bool | None:
    told = summary(path, host)
    return told.prompted if told is not None else None


ADAPTER: AgentAdapter = Aider()
