"""Where Qwen Code keeps its conversations.

`projects/<project>/chats/<id>.jsonl`, from the first prompt or command on. From the start of the program on there is
`debug/<id>.txt`, which is written to all the time, and begun or gone on with at once when the conversation changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from os.path import join

from perdure.agents._json import text
from perdure.agents._kin import Chat, Store
from perdure.agents.qwen.transcript import first_line
from perdure.model.process import Process
from perdure.ports import HostView

_ENDING, _LOG = ".jsonl", ".txt"
_HEAD = 1 << 13
#: The line of a log that tells where its program was started, and what follows the directory in it.
_STARTED_IN, _BELOW = "Loading project level skills from: ", "/.qwen/skills"


def slug(path: str) -> str:
    """Return the name of a project's directory. Different paths may share one."""
    return "".join(_plain(character) for character in path)


def _plain(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    # Characters are counted as JavaScript counts them.
    return "-" if ord(character) < 0x10000 else "--"


class QwenStore(Store):
    """`~/.qwen`, seen from a process."""

    def __init__(
        self, home: str, directories: Sequence[str], host: HostView, is_conversation: Callable[[str], bool]
    ) -> None:
        super().__init__(home, directories, host)
        self._is_conversation = is_conversation

    def is_deaf(self, process: Process) -> bool:
        """Return whether its log of each conversation, by which a switch is known, is turned off."""
        return process.environ.get("QWEN_DEBUG_LOG_FILE", "").lower() in ("0", "false", "no", "off")

    def find(self, conversation: str) -> Chat | None:
        """Return a conversation by its id, whichever project it is of."""
        projects = join(self.home, "projects")
        every = (join(projects, name, "chats") for name in sorted(self.host.names(projects)))
        for directory in dict.fromkeys((*self.own_directories(), *every)):
            path = join(directory, conversation + _ENDING)
            written = self.host.modified_at(path)
            if written is not None and self.host.size(path):
                return Chat(id=conversation, path=path, written_at=written)
        return None

    def touched(self, since: datetime) -> list[Chat]:
        """Return the conversations about which anything was written since, the latest first."""
        found = {chat.id: chat for chat in self._own_chats() if chat.written_at >= since}
        for written, id in self._logged(since):
            known = found.get(id) or self.find(id)
            if known is None and not self._is_here(id):
                continue
            if known is not None and known.path is not None and not self._is_own(known.path):
                continue
            latest = max(written, known.written_at) if known else written
            found[id] = Chat(id=id, path=known.path if known else None, written_at=latest)
        return sorted(found.values(), key=lambda chat: chat.written_at, reverse=True)

    def latest(self) -> Chat | None:
        """Return the project's conversation that was written to last."""
        return max(self._own_chats(), key=lambda chat: chat.written_at, default=None)

    def is_prompted(self, chat: Chat) -> bool:
        """Return whether qwen would resume it: any line at all is enough."""
        return chat.path is not None and self.started_in(chat) is not None

    def started_in(self, chat: Chat) -> str | None:
        """Return the project it is of."""
        return text(first_line(chat.path, self.host).get("cwd")) if chat.path else None

    def own_directories(self) -> list[str]:
        """Return where the project's conversations are written."""
        return [join(self.home, "projects", slug(directory), "chats") for directory in self.directories]

    def _own_chats(self) -> list[Chat]:
        found = []
        for directory in self.own_directories():
            for name in self.host.names(directory):
                id, path = name.removesuffix(_ENDING), join(directory, name)
                written = self.host.modified_at(path)
                if name.endswith(_ENDING) and self._is_conversation(id) and written and self._is_own(path):
                    found.append(Chat(id=id, path=path, written_at=written))
        return found

    def _is_own(self, path: str) -> bool:
        """Whether a transcript is of this project; one that does not tell yet has only just begun."""
        directory = text(first_line(path, self.host).get("cwd"))
        return directory in (None, *self.directories)

    def _logged(self, since: datetime) -> list[tuple[datetime, str]]:
        """When the logs were last written to that were at all since, and their conversations."""
        directory = join(self.home, "debug")
        found = []
        for name in self.host.names(directory):
            id = name.removesuffix(_LOG)
            if name.endswith(_LOG) and self._is_conversation(id):
                written = self.host.modified_at(join(directory, name))
                if written is not None and written >= since:
                    found.append((written, id))
        return found

    def _is_here(self, id: str) -> bool:
        """Whether a log may be of a program in this project: one that began with /clear does not tell."""
        head = (self.host.read(join(self.home, "debug", id + _LOG), limit=_HEAD) or b"").decode(errors="replace")
        place = head.partition(_STARTED_IN)[2].partition("\n")[0]
        return not place.endswith(_BELOW) or place.removesuffix(_BELOW) in self.directories
