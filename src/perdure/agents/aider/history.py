"""The file aider writes a conversation to, which is all the identity a conversation has.

By flag or variable a process may have a file of its own. Otherwise it is the one of the repository or the directory, and
every aider that runs there appends to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import dirname, isabs, join, normpath

from msgspec import Struct

from perdure.agents._json import one_line
from perdure.agents._records import turn
from perdure.model.process import Process
from perdure.ports import HostView

#: The options and operands of a command line: the last value of each option, "" for one that takes none.
Options = Mapping[str, str]

USUAL = ".aider.chat.history.md"
_FLAG, _VARIABLE, _SETTING = "--chat-history-file", "AIDER_CHAT_HISTORY_FILE", "chat-history-file"
_BEGINS = "# aider chat started at "
#: Lines of what a person said and of what aider itself said end in two blanks, as markdown breaks lines; those of an
#: answer do not, whatever they begin with.
_USER, _TOOL, _BREAK = "#### ", "> ", "  "
_MOST_READ, _TAIL = 1 << 26, 1 << 17


class History(Struct, frozen=True, kw_only=True):
    """Where a process writes its conversation."""

    path: str
    #: Chosen for this process alone.
    own: bool
    why: str


def find_history(process: Process, options: Options, files: Sequence[str], host: HostView) -> History | None:
    """Return the file, None when the directory it depends on is not known."""
    cwd = process.cwd
    chosen = options.get(_FLAG)
    if cwd is None:
        return History(path=normpath(chosen), own=True, why=_BY_FLAG) if chosen and isabs(chosen) else None
    root = work_tree(cwd, host)
    usual = join(_repository(cwd, root, options, files, host) or cwd, USUAL)
    path, own, why = usual, False, "no flag chooses a history file: every aider in this directory appends to this one"
    if chosen:
        path, own, why = chosen, True, _BY_FLAG
    elif (found := _from_files(process, options, root, host)) is not None:
        path, why = found, "a settings file chooses the history file, for every aider that reads it"
    elif chosen := process.environ.get(_VARIABLE):
        path, own, why = chosen, True, "a variable of this process chooses the history file"
    # By its real name: two processes that reach one file by two names write into one conversation.
    path = host.physical(normpath(join(cwd, path)))
    if own and host.physical(path) == host.physical(usual):
        own, why = False, "the history file chosen is the usual one, to which every aider in this directory appends"
    return History(path=path, own=own, why=why)


_BY_FLAG = "the command line chooses the history file"


def work_tree(directory: str, host: HostView) -> str | None:
    """Return the directory with the repository that `directory` is in, None when it is in none."""
    at = host.physical(directory)
    while True:
        if (
            host.size(join(at, ".git", "HEAD")) is not None
            or (host.read(join(at, ".git"), limit=8) or b"") == b"gitdir: "
        ):
            return at
        if dirname(at) == at:
            return None
        at = dirname(at)


def branch(directory: str, host: HostView) -> str | None:
    """Return the branch checked out in a repository, None when there is none or it cannot be told."""
    root = work_tree(directory, host)
    if root is None:
        return None
    pointer = (host.read(join(root, ".git"), limit=4096) or b"").decode(errors="replace").removeprefix("gitdir: ")
    head = host.read(join(root, pointer.strip() or ".git", "HEAD"), limit=4096) or b""
    reference = head.decode(errors="replace").strip().partition("ref: refs/heads/")[2]
    return one_line(reference)


def _repository(cwd: str, root: str | None, options: Options, files: Sequence[str], host: HostView) -> str | None:
    """The repository whose history file is used: that of the files it was given, when they agree on one."""
    if "--no-git" in options or not files:
        return root
    roots = {work_tree(join(cwd, file), host) for file in files}
    return roots.pop() or root if len(roots) == 1 else root


def _from_files(process: Process, options: Options, root: str | None, host: HostView) -> str | None:
    """What settings say, those that count most first: files of variables, of which the last one read wins, and of options."""
    home, cwd = process.environ.get("HOME") or host.home, process.cwd or "/"
    places = [home, *([root] if root else []), cwd]
    variables = [join(place, ".env") for place in places]
    variables.append(join(cwd, options.get("--env-file") or (join(root, ".env") if root else ".env")))
    for path in reversed(variables):
        if (found := _value(path, f"{_VARIABLE}=", host)) is not None:
            return found
    if process.environ.get(_VARIABLE):
        return None
    settings = [join(place, ".aider.conf.yml") for place in places]
    if options.get("--config"):
        settings.append(join(cwd, options["--config"]))
    values = (_value(path, f"{_SETTING}:", host) for path in reversed(settings))
    return next((each for each in values if each is not None), None)


def _value(path: str, begins: str, host: HostView) -> str | None:
    text = (host.read(path) or b"").decode(errors="replace")
    for line in reversed(text.splitlines()):
        said = line.removeprefix("export ").strip()
        if said.startswith(begins):
            value = said.removeprefix(begins).strip()
            if value[:1] in ("'", '"'):
                return value[1:].partition(value[0])[0] or None
            return value.partition(" #")[0].strip() or None
    return None


# -- what is in it ----------------------------------------------------------------------------------------------


class Summary(Struct, frozen=True, kw_only=True):
    """What the end of a history file tells."""

    prompted: bool
    task: str | None = None
    model: str | None = None
    version: str | None = None


def summary(path: str, host: HostView) -> Summary | None:
    """Return what the last pages of a history file say, None when there is no such file."""
    data = host.read(path, limit=_TAIL, tail=True)
    if data is None:
        return None
    task = model = version = None
    prompted = len(data) >= _TAIL
    for role, lines in _blocks(_lines(data)):
        if role == "user":
            prompted = True
            task = "\n".join(lines) if not lines[0].startswith(("/", "!")) else task
        elif role == "system":
            for line in lines:
                kind, _, rest = line.partition(": ")
                if kind in ("Model", "Main model"):
                    model = rest.partition(" with ")[0] or model
                elif line.startswith("Aider v"):
                    version = line.removeprefix("Aider v")
    return Summary(prompted=prompted, task=one_line(task), model=one_line(model), version=one_line(version))


def turns(path: str, host: HostView) -> Iterator[Mapping[str, object]]:
    """Yield the turns of a history file; of one too large to be read at once, those at its end."""
    data = host.read(path, limit=_MOST_READ, tail=True) or b""
    lines = _lines(data)
    if len(data) < _MOST_READ:
        # Whatever is above the first beginning is not aider's.
        begun = next((at for at, line in enumerate(lines) if line.startswith(_BEGINS)), len(lines))
        lines = lines[begun:]
    for role, said in _blocks(lines):
        text = "\n".join(said).strip()
        if text:
            yield turn(role, text)


def _lines(data: bytes) -> list[str]:
    return data.decode(errors="replace").split("\n")


def _blocks(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield who speaks, and the lines of it, without the marks."""
    role, block = "assistant", list[str]()
    for line in lines:
        speaker, said = _speaker(line)
        if speaker != role or line.startswith(_BEGINS):
            if block:
                yield role, block
            role, block = speaker, []
        block.append(said)
    if block:
        yield role, block


def _speaker(line: str) -> tuple[str, str]:
    if line.startswith(_BEGINS):
        return "system", line[2:]
    for role, mark in (("user", _USER), ("system", _TOOL)):
        if line.startswith(mark) and line.endswith(_BREAK):
            return role, line[len(mark) :].rstrip()
    return "assistant", line
