"""An agent that is told by data alone, and the ground the others stand on.

An adapter with more to say begins here and overrides what its agent does differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from perdure.agents._case import About, Candidate, Case
from perdure.agents._globs import Found, files_of, find_files
from perdure.agents._opening import opening
from perdure.agents._options import Argument, Grammar, kept
from perdure.agents._program import Program, head_of, locate, undisguised
from perdure.model.agent import ID, AgentSpec
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Command, Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import HostView, Sighting


@cache
def _grammar(declared: tuple[str, ...]) -> Grammar:
    return Grammar("\n".join(declared))


@cache
def _id_pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


#: More guesses than anybody would look at; one that is nobody's is enough to doubt.
_MOST_GUESSED = 500


class Ordinary:
    """An agent by its spec: `ports.AgentAdapter`."""

    def __init__(self, name: str, spec: AgentSpec) -> None:
        self.name = name
        self.spec = spec
        self.program = Program(names=frozenset(spec.binaries), packages=spec.packages, scripts=frozenset(spec.scripts))
        self.programs = self.program.programs
        self.same_directory = spec.same_directory
        self.environment = frozenset(spec.environment)
        self.signs = spec.signs
        own = [word for form in (spec.resume, spec.fresh) for word in _before_id(form)]
        #: The options and first words whose value is the conversation.
        self.named_by = frozenset((*spec.named_by, *own))
        #: The words of a subcommand that is given the conversation: `threads continue`.
        self._leading = tuple(spec.resume[: spec.resume.index(ID)]) if ID in _split(spec.resume)[0] else ()
        undeclared = (f"{word} <id>" for word in sorted(self.named_by) if word.startswith("-"))
        forms = (line for form in (spec.resume, spec.fresh) for line in _declared(form))
        #: The options that act once. One that is declared too keeps the arity it was declared with.
        self._dropped = (*forms, *undeclared, *spec.drop)

    # -- its command line ---------------------------------------------------------------------------------------

    @property
    def grammar(self) -> Grammar:
        """Its options."""
        return _grammar((*self._dropped, *self.spec.keep))

    def is_conversation(self, text: str) -> bool:
        """Return whether `text` can be a conversation's id."""
        return _id_pattern(self.spec.id).fullmatch(text) is not None

    def score(self, process: Process) -> float:
        """Return how surely this is the agent at work with a person; 0 for its other runs."""
        score = locate(self.program, process)[0]
        if not score:
            return 0.0
        arguments = self.arguments(process)
        words = [argument.values[0] for argument in arguments if argument.name is None and argument.words[0] != "--"]
        if any(words[: len(form)] == form for form in map(str.split, self.spec.not_agents)):
            return 0.0
        others = {self.grammar.name_of(word) for word in self.spec.not_agents}
        return 0.0 if any(argument.name in others for argument in arguments) else score

    def arguments(self, process: Process) -> list[Argument]:
        """Return what its command line says."""
        head = locate(self.program, process)[1]
        return list(self.grammar.parse(undisguised(self.program, process.argv)[head:]))

    def named(self, process: Process) -> str | None:
        """Return the conversation the command line names, None when it names none."""
        arguments = self.arguments(process)
        options = {self.grammar.name_of(word) for word in self.named_by}
        for argument in arguments:
            if argument.name in options and argument.values and self.is_conversation(argument.values[-1]):
                return argument.values[-1]
        words = [argument.values[0] for argument in arguments if argument.name is None]
        if self.spec.resume[:1] == (ID,) and words and self.is_conversation(words[0]):
            return words[0]
        for before in (*((word,) for word in self.named_by), self._leading):
            place = len(before)
            if before and tuple(words[:place]) == before and place < len(words) and self.is_conversation(words[place]):
                return words[place]
        return None

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        """Return the command that brings the conversation back, or begins it when nothing was ever said in it."""
        form = self._form(identity)
        if form is None or not launched.argv:
            return None
        conversation = identity.conversation or ""
        argv = undisguised(self.program, launched.argv)
        head = head_of(self.program, argv)[1]
        leading, rest = _split([word.replace(ID, conversation) for word in form])
        words = (*argv[:head], *leading, *self.kept(argv[head:]), *rest)
        return Command(argv=words, cwd=self.directory(identity, launched), environ=launched.environ)

    def _form(self, identity: Identity) -> Sequence[str] | None:
        """Return the words that name the conversation, none for one that is to begin; None where nothing brings it back."""
        conversation, is_new = identity.conversation, identity.prompted is False
        if conversation is None:
            return () if is_new else None
        if not self.is_conversation(conversation):
            return None
        if is_new:
            return () if identity.taken else self.spec.fresh
        return self.spec.resume or None

    def begin(self, prompt: str = "") -> tuple[tuple[str, ...], bool]:
        """Return the words that start it, and whether they ask for `prompt`."""
        return opening(self.spec.begin or self.spec.binaries[:1], self.spec.prompt, prompt)

    def kept(self, words: Sequence[str]) -> list[str]:
        """Return the options that made the agent what it was."""
        return kept(self.grammar, words, {*_grammar(self._dropped).names, *map(self.grammar.name_of, self.named_by)})

    def directory(self, identity: Identity, launched: Command) -> str:
        """Return where the conversation has to be resumed."""
        return identity.home if self.same_directory and identity.home else launched.cwd

    # -- its conversations --------------------------------------------------------------------------------------

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the conversation the command line names, then those written since the process began."""
        process = sighting.process
        # A transcript's path says nothing of the directory the agent worked in.
        case = Case(
            self.name,
            lambda conversation, evidence: self._about(conversation, evidence, process, host),
            place="anywhere",
        )
        named = self.named(process)
        since, complete = self._written_since(process, host)
        others = [candidate for candidate in since if candidate[1] != named]
        if not complete:
            case.note("there are too many transcripts to look at all")
        if named is None:
            case.note("the command line names none")
            return case.closed(case.guesses(others))
        written = next((found.written_at for found in self.transcripts(named, process, host)), None)
        lost = bool(self.spec.transcripts) and written is None and not self.spec.fresh
        return case.closed(case.launched(named, others, lost=lost, doubtful=not complete, written_at=written))

    def transcripts(self, conversation: str, process: Process, host: HostView) -> list[Found]:
        """Return the files of a conversation, newest first."""
        home = process.environ.get("HOME") or host.home
        return files_of(self.spec.transcripts, conversation, home=home, environ=process.environ, host=host)

    def _written_since(self, process: Process, host: HostView) -> tuple[list[Candidate], bool]:
        """The newest conversations written since the process began, and whether all there are were looked at."""
        home = process.environ.get("HOME") or host.home
        everything, complete = find_files(
            self.spec.transcripts, self.spec.id, home=home, environ=process.environ, host=host
        )
        newest: dict[str, Candidate] = {}
        for found in everything:
            if found.written_at < process.started_at or len(newest) >= _MOST_GUESSED:
                break
            newest.setdefault(found.id, (found.written_at, found.id))
        return list(newest.values()), complete

    def _about(self, conversation: str, evidence: Evidence, process: Process, host: HostView) -> About:
        if not self.spec.transcripts:
            return About()
        written = any(found.size for found in self.transcripts(conversation, process, host))
        # An id we may have given ourselves exists before anything was said under it.
        return About(prompted=True if written else (False if self.spec.fresh and evidence is Evidence.ARGV else None))

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return where the conversation is written and when it last was."""
        if identity.conversation is None:
            return AgentDetails()
        found = next(iter(self.transcripts(identity.conversation, process, host)), None)
        return AgentDetails(transcript=found.path, last_activity_at=found.written_at) if found else AgentDetails()

    # -- its screen ---------------------------------------------------------------------------------------------

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what the first fitting rule says."""
        from perdure.agents._screens import judge  # dear, and nothing a save needs

        return judge(self.name, self.spec.screen, screen)


def _before_id(form: Sequence[str]) -> list[str]:
    """The word that stands before the id, or is joined to it by `=`."""
    for at, word in enumerate(form):
        if word == ID:
            return list(form[at - 1 : at]) if at else []
        if word.endswith(f"={ID}"):
            return [word.removesuffix(f"={ID}")]
    return []


def _declared(form: Sequence[str]) -> list[str]:
    """The options of a form as `--help` would print them: what is put in again must be taken out first."""
    following = (*form[1:], "-")
    return [
        word.partition("=")[0] + ("" if "=" not in word and after.startswith("-") else " <value>")
        for word, after in zip(form, following, strict=False)
        if word.startswith("-")
    ]


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before the first option, and the rest."""
    for at, word in enumerate(words):
        if word.startswith("-"):
            return list(words[:at]), list(words[at:])
    return list(words), []
