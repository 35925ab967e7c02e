"""Where Gemini CLI keeps its conversations.

`tmp/<project>/chats/session-<minute>-<8 of the id>.jsonl`, written from the start of the program on. Which name a
project has is in `projects.json`, and in a file of the project's directory. Brought back, a conversation goes on in the
file it was begun in; beside it appears a second one of its id with nothing in it, and that is the one hooks name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from os.path import basename, dirname, join

from perdure.agents import _records
from perdure.agents._case import Candidate
from perdure.agents._json import decode_object, mapping, text
from perdure.agents._kin import Chat, Store
from perdure.agents.gemini import transcript
from perdure.model.text import decode
from perdure.ports import HostView

_PREFIX, _SHORT = "session-", 8
_ENDINGS = (".jsonl", ".json")
_OWNER = ".project_root"
#: How much earlier than the conversation is taken up the program that was told to do so makes its own file: 0.2 s here.
_LAUNCH = timedelta(seconds=5)


def short(conversation: str) -> str:
    """Return the part of an id that is in its files' names."""
    return conversation[:_SHORT]


def siblings(path: str, host: HostView) -> list[str]:
    """Return the files that may be of the same conversation as this one, itself among them."""
    stem = basename(path).rpartition(".")[0]
    return _named(dirname(path), stem.rpartition("-")[2], host)


def _named(directory: str, beginning: str, host: HostView) -> list[str]:
    endings = tuple(f"-{beginning}{ending}" for ending in _ENDINGS)
    names = (name for name in host.names(directory) if name.startswith(_PREFIX) and name.endswith(endings))
    return [join(directory, name) for name in sorted(names)]


def real_first(paths: Sequence[str], conversation: str | None, host: HostView) -> list[str]:
    """Return those of the files that are the conversation's, the one it is really written to first.

    One without a header may be anybody's with the same beginning of an id, and is taken for this one's.
    """
    found = []
    for path in paths:
        head, written = transcript.header(path, host), host.modified_at(path)
        if written is not None and (head is None or conversation in (None, head.get("sessionId"))):
            found.append((transcript.is_prompted(path, host), written, path))
    return [path for _, _, path in sorted(found, reverse=True)]


class GeminiStore(Store):
    """`~/.gemini`, seen from a process."""

    def __init__(self, home: str, directories: Sequence[str], host: HostView) -> None:
        super().__init__(home, directories, host)
        self._found: dict[str, list[str]] = {}
        self._own: list[str] | None = None

    def files(self, conversation: str) -> list[str]:
        """Return the files of a conversation, the one it is really written to first."""
        if conversation not in self._found:
            self._found[conversation] = next(
                (
                    files
                    for directory in self._chat_directories()
                    if (files := real_first(_named(directory, short(conversation), self.host), conversation, self.host))
                ),
                [],
            )
        return self._found[conversation]

    def find(self, conversation: str) -> Chat | None:
        """Return a conversation by its id, whichever project it is of."""
        files = self.files(conversation)
        written = [at for path in files if (at := self.host.modified_at(path)) is not None]
        return Chat(id=conversation, path=files[0], written_at=max(written)) if written else None

    def touched(self, since: datetime) -> list[Chat]:
        """Return the project's conversations that were written to since, the latest first."""
        newest: dict[str, Chat] = {}
        for written, path in self._own_files():
            id = self._conversation(path) if written >= since else None
            if id is not None and (id not in newest or newest[id].written_at < written):
                newest[id] = Chat(id=id, path=path, written_at=written)
        return sorted(newest.values(), key=lambda chat: chat.written_at, reverse=True)

    def latest(self) -> Chat | None:
        """Return the project's conversation that was written to last."""
        for written, path in sorted(self._own_files(), reverse=True):
            id = self._conversation(path)
            if id is not None and transcript.is_prompted(path, self.host):
                return Chat(id=id, path=path, written_at=written)
        return None

    def is_prompted(self, chat: Chat) -> bool:
        """Return whether gemini would resume it."""
        return chat.path is not None and transcript.is_prompted(chat.path, self.host)

    def started_in(self, chat: Chat) -> str | None:
        """Return the project it is of."""
        return self._owner(dirname(dirname(chat.path))) if chat.path else None

    def switched_to(self, conversation: str, since: datetime) -> list[Candidate]:
        """Return conversations that were taken up in this project since, from within a running program.

        No hook tells of that before the next prompt. A program that was started with the conversation makes a file of
        its own as it does so. Prompts that followed say nothing: another pane may be in that conversation too.
        """
        found = []
        for chat in self.touched(since):
            taken_up = self._taken_up(chat, since) if chat.id != conversation else None
            if taken_up is not None:
                found.append((taken_up, chat.id))
        return found

    def _taken_up(self, chat: Chat, since: datetime) -> datetime | None:
        path = next(iter(self.files(chat.id)), None)
        later = chat.written_at
        for record in _records.newest_first(path, self.host) if path else ():
            patch = mapping(record.get("$set"))
            at = _records.moment(text(patch.get("lastUpdated")) or text(record.get("timestamp")))
            if text(patch.get("sessionId")) and not self._is_launch(chat.id, at or later):
                return at or later if (at or later) > since else None
            later = at or later
        return None

    def _is_launch(self, conversation: str, at: datetime) -> bool:
        begun = []
        for path in self.files(conversation):
            # Within the minute the conversation was begun in, the second header is in the first one's file.
            headers = (record for record in _records.every_record(path, self.host) if text(record.get("projectHash")))
            begun += [_records.moment(text(each.get("startTime"))) for each in headers]
        # The first of all is the conversation's own.
        later = sorted(each for each in begun if each is not None)[1:]
        return any(at - _LAUNCH <= each <= at for each in later)

    def _own_files(self) -> Iterator[tuple[datetime, str]]:
        for directory in self.own_directories():
            for name in self.host.names(directory):
                path = join(directory, name)
                if name.startswith(_PREFIX) and name.endswith(_ENDINGS) and (at := self.host.modified_at(path)):
                    yield at, path

    def _conversation(self, path: str) -> str | None:
        head = transcript.header(path, self.host)
        if head is not None:
            return text(head.get("sessionId")) if head.get("kind") != "subagent" else None
        # What was typed is in a list of its own, with the whole id.
        stem = basename(path).rpartition(".")[0].rpartition("-")[2]
        raw = self.host.read(join(dirname(dirname(path)), "logs.json"))
        logged = mapping(decode_object(b'{"entries":' + raw + b"}") if raw else None).get("entries")
        ids = [text(mapping(each).get("sessionId")) for each in logged] if isinstance(logged, list) else []
        return next((id for id in reversed(ids) if id and short(id) == stem), None)

    def _chat_directories(self) -> list[str]:
        """The directories of all projects, this process's own first."""
        projects = join(self.home, "tmp")
        every = (join(projects, name, "chats") for name in sorted(self.host.names(projects)))
        return [*dict.fromkeys((*self.own_directories(), *every))]

    def own_directories(self) -> list[str]:
        """Return where the project's conversations are written."""
        if self._own is None:
            self._own = self._projects()
        return self._own

    def _projects(self) -> list[str]:
        projects = join(self.home, "tmp")
        known = mapping(mapping(decode_object(self.host.read(join(self.home, "projects.json")))).get("projects"))
        found = []
        for directory in self.directories:
            name = text(known.get(directory))
            if name is None or "/" in name or self._owner(join(projects, name)) not in (None, directory):
                names = self.host.names(projects)
                name = next((each for each in names if self._owner(join(projects, each)) == directory), None)
            if name is not None:
                found.append(join(projects, name, "chats"))
        return found

    def _owner(self, project: str) -> str | None:
        raw = self.host.read(join(project, _OWNER), limit=1 << 13)
        return decode(raw).strip() or None if raw is not None else None
