"""Simulant, the program that stands for an agent in demonstrations and tests (`perdure.demo.agent`).

It keeps a live registry as the best real ones do, so that what a demonstration shows is the ordinary way and no short cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import join

from msgspec import structs

from perdure.agents._case import About, Case
from perdure.agents._homes import every_home, home_of, profile_of
from perdure.agents._json import decode_object, one_line, text
from perdure.agents._records import every_record, moment, turn
from perdure.agents._spec import Ordinary
from perdure.model.agent import ID, LAST, PROMPT, TITLE, AgentSpec, ScreenRule
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.ports import AgentAdapter, HostView, Sighting

_HOME = ("SIMULANT_HOME", ".simulant")
_FOLDER, _SUFFIX = "conversations", ".jsonl"

SPEC = AgentSpec(
    binaries=("simulant",),
    prompt=(PROMPT,),
    packages=("/perdure/demo/",),
    scripts=("agent.py",),
    not_agents=("--help", "--version"),
    environment=("SIMULANT_HOME",),
    keep=("--model <name>", "--boot <seconds>", "--think <seconds>", "--lazy-death <seconds>"),
    drop=("--help", "--version"),
    resume=("--resume", ID),
    fresh=("--session", ID),
    transcripts=(f"$SIMULANT_HOME/{_FOLDER}/{ID}{_SUFFIX}", f"~/.simulant/{_FOLDER}/{ID}{_SUFFIX}"),
    signs=(
        r"title:^[◈⠀-⣿] .+ · simulant$",
        r"^◈ simulant \d",
        r"^you ▸(?: |$)",
        r"^[⠀-⣿] thinking… \(\d+ s, Ctrl-C interrupts\)$",
        r"^  \[y\] yes  \[n\] no ▸",
    ),
    screen=(
        ScreenRule(
            id="attention.run", match=r"^  \[y\] yes  \[n\] no ▸", region=LAST, state="attention", reason="permission"
        ),
        ScreenRule(id="busy.spinner", match=r"^[⠀-⣿] thinking… \(\d+ s, ", region=LAST, state="busy"),
        ScreenRule(id="idle.prompt", match=r"^you ▸(?: |$)", region=LAST, state="idle"),
        ScreenRule(id="busy.title", match=r"^[⠀-⣿] .+ · simulant$", region=TITLE, state="busy"),
    ),
)


class Simulant(Ordinary):
    """The simulated agent, by its own registry first."""

    title_tells = True

    def __init__(self) -> None:
        super().__init__("simulant", SPEC)

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the conversation the registry tells; without an entry, what the command line and the files do."""
        process = sighting.process
        profile = profile_of(process, *_HOME, host)
        conversation, why = self._registered(process, host)
        if conversation is None:
            found = super().identify(sighting, host)
            return [structs.replace(each, profile=profile, because=(why, *each.because)) for each in found]
        said = bool(self.transcripts(conversation, process, host))
        case = Case(self.name, lambda _, __: About(prompted=said), profile=profile)
        case.note(why)
        return case.closed([case.claim(conversation, Evidence.REGISTRY, certain=True)])

    def _registered(self, process: Process, host: HostView) -> tuple[str | None, str]:
        """The conversation of this very process by the registry, and in words why that counts or does not."""
        raw = host.read(_entry(process, host))
        entry = decode_object(raw)
        if raw is None or entry is None:
            return None, "no registry entry for this process" if raw is None else "the registry entry cannot be read"
        if (entry.get("pid"), entry.get("started")) != (process.pid, process.start_ticks):
            return None, "the registry entry is of another process with this pid"
        conversation = text(entry.get("id"))
        if conversation is None or not self.is_conversation(conversation):
            return None, "the registry entry names no conversation"
        return conversation, "the registry entry matches this process and its start time"

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return nothing: it keeps which conversation it is in, and not what it is doing."""
        return ()

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return its entry in the registry, which is another when its conversation is."""
        return (_entry(process, host),)

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the transcript says."""
        details = super().describe(identity, process, host)
        if details.transcript is None:
            return details
        said = list(every_record(details.transcript, host))
        asked = [text(record.get("text")) for record in said if record.get("role") == "user"]
        return structs.replace(
            details,
            title=one_line(asked[0]) if asked else None,
            task=one_line(asked[-1]) if asked else None,
            model=next((model for record in reversed(said) if (model := text(record.get("model")))), None),
            version=next((version for record in said if (version := text(record.get("version")))), None),
            began_at=next((at for record in said if (at := moment(record.get("time")))), None),
        )

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield what was asked and answered."""
        if transcript is None and self.is_conversation(conversation):
            name = conversation + _SUFFIX
            paths = (join(home, _FOLDER, name) for home in every_home(_HOME[1], host))
            transcript = next((path for path in paths if host.size(path) is not None), None)
        for record in every_record(transcript, host) if transcript is not None else ():
            if record.get("role") in ("user", "assistant"):
                final = True if record["role"] == "assistant" else None
                yield turn(str(record["role"]), text(record.get("text")), time=moment(record.get("time")), final=final)


def _entry(process: Process, host: HostView) -> str:
    return join(home_of(process, *_HOME, host), "running", f"{process.pid}.json")


ADAPTER: AgentAdapter = Simulant()
