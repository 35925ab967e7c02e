"""An ordinary agent as data: what it is called, how its command line reads, where it writes, what its screen says.

The same data describe agents that come with the program and those a user adds in config.toml.
"""

from __future__ import annotations

from msgspec import Struct

#: What most agents name a conversation by.
UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
#: Stands for the conversation's id in `resume`, `fresh` and `transcripts`.
ID = "{id}"
#: Stands for what is asked for first in `prompt`.
PROMPT = "{prompt}"

#: The regions of a screen that need no knowledge of the program drawing it.
TITLE, LAST, BOTTOM = "title", "last", "bottom"
#: What a sign begins with that stands in the title.
IN_TITLE = f"{TITLE}:"


class ScreenRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing a screen can say. Rules are tried in order, and the first that fits decides."""

    #: Names the rule in explanations: `busy.footer`. Unique within its agent.
    id: str
    #: A regular expression searched for in each line of the region.
    match: str
    #: Where that has to stand: `title`, `last` (the last line that is not empty) or `bottom` (the last `lines` of these).
    region: str = BOTTOM
    lines: int = 6
    #: A regular expression that must be in no line of the region.
    unless: str = ""
    #: idle, busy, attention or error; empty for a viewer that covers the agent, which freezes the state.
    state: str = ""
    #: For attention: permission, question, limit or login.
    reason: str = ""
    #: How far the rule is to be trusted, from 0 to 1.
    confidence: float = 0.9


class AgentSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All there is to know of an ordinary agent."""

    #: What its program or script is called, without directories.
    binaries: tuple[str, ...]
    #: Parts of a path that only its own files have, such as `/@vendor/agent/`.
    packages: tuple[str, ...] = ()
    #: What scripts in `packages` are called when that alone says nothing, such as `cli.js`.
    scripts: tuple[str, ...] = ()
    #: Options and first words of runs that are no conversation with a person: `--version`, `serve`, `threads list`.
    not_agents: tuple[str, ...] = ()
    #: Variables that decide where it lives and whom it talks to. Never secrets.
    environment: tuple[str, ...] = ()
    #: A regular expression for a conversation's id.
    id: str = UUID
    #: Options as its `--help` prints them (`-m, --model <name>`): those that come back, and those that act once.
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    #: Options and first words whose value names the conversation, besides those in `resume` and `fresh`.
    named_by: tuple[str, ...] = ()
    #: The words that bring a conversation back. Leading ones that are no options (a subcommand) come right after the
    #: program, the rest after the kept options. Empty: it cannot be resumed.
    resume: tuple[str, ...] = ()
    #: The words that begin a conversation under an id of our choosing. Empty: it has no such words.
    fresh: tuple[str, ...] = ()
    #: The words that start it with nothing said yet. Empty: the first of `binaries` alone.
    begin: tuple[str, ...] = ()
    #: The words that follow these to ask for something at once, with `{prompt}`. Empty: it has no such words.
    prompt: tuple[str, ...] = ()
    #: Where a conversation is written: absolute paths with `{id}`, `~`, `$VARIABLE` and `*` for a part of a name.
    #: One with a variable that is not set does not count.
    transcripts: tuple[str, ...] = ()
    #: It finds a conversation only from the directory it was started in.
    same_directory: bool = False
    #: Regular expressions for what stands on most of its screens and on hardly any other agent's: a frame, a prompt, a
    #: status bar. One that begins with `title:` is searched for in the title, the others in every line of the screen.
    signs: tuple[str, ...] = ()
    screen: tuple[ScreenRule, ...] = ()
