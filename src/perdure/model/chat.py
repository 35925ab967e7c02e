"""A chat: one session of a gateway, by its key, and what was said in it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

#: The machine itself: its files, its terminal.
LOCAL = "local"
#: The platforms that are known without being registered. Their ids of chats are unique among all their chats.
PLATFORMS = frozenset(
    """
    local telegram discord whatsapp slack
    whatsapp_cloud signal mattermost matrix homeassistant email sms dingtalk api_server webhook msgraph_webhook
    feishu wecom wecom_callback weixin bluebubbles qqbot yuanbao relay
    """.split()
)


class Source(Struct, frozen=True, kw_only=True):
    """Where a message came from: everything a gateway can tell about it."""

    #: A known platform's name, or a registered one's; `local` for the machine itself.
    platform: str
    chat_id: str
    #: dm, group, channel, thread, or whatever else a platform has.
    chat_type: str = "dm"
    chat_name: str | None = None
    chat_topic: str | None = None
    #: Another id of the same chat, as some bridges give.
    chat_id_alt: str | None = None
    #: The chat a thread or channel belongs to.
    parent_chat_id: str | None = None
    thread_id: str | None = None
    #: Guild, workspace, server: what the chat's id is only unique within.
    scope_id: str | None = None
    user_id: str | None = None
    user_id_alt: str | None = None
    user_name: str | None = None
    message_id: str | None = None
    #: The account or bot it came in by, when there are several.
    profile: str | None = None
    is_bot: bool = False
    #: Somebody's role allows them more. Never written down: it is to be proved anew.
    role_authorized: bool = False
    auto_thread_created: bool = False
    auto_thread_initial_name: str | None = None
    #: It came by a relay that is trusted. Never written down, so that nobody can forge it.
    relayed: bool = False


class HomeChannel(Struct, frozen=True, kw_only=True):
    """Where on a platform something goes when only the platform is named."""

    platform: str
    chat_id: str
    name: str = "Home"
    thread_id: str | None = None


class KeyRules(StrEnum):
    """Which messages belong to the same chat: three generations of rules."""

    #: One chat for everybody's direct messages on a platform: they read each other's.
    PER_PLATFORM = "per-platform"
    #: The same, but WhatsApp's direct messages by chat.
    WHATSAPP_BY_CHAT = "whatsapp-by-chat"
    #: Different conversations are never in the same chat.
    ISOLATED = "isolated"


class ResetMode(StrEnum):
    """When a chat is closed and another begun by itself."""

    NONE = "none"
    IDLE = "idle"
    DAILY = "daily"
    BOTH = "both"


class CloseReason(StrEnum):
    """Why a chat was closed."""

    IDLE = "idle"
    DAILY = "daily"
    #: Somebody asked for a new one.
    ASKED = "asked"
    #: Another chat of the same key was gone on with.
    SWITCHED = "switched"
    SUSPENDED = "suspended"
    #: Going on after an interruption was not done in time.
    RESUME_EXPIRED = "resume_expired"
    #: It was made shorter, and goes on in its successor.
    COMPRESSED = "compressed"
    IMPORTED = "imported"


#: Why a chat is closed, and another begun, without anybody asking for it.
BY_ITSELF = (CloseReason.IDLE, CloseReason.DAILY, CloseReason.SUSPENDED, CloseReason.RESUME_EXPIRED)


class Kinship(StrEnum):
    """How a chat follows from the one before."""

    #: Another conversation in the same place.
    SUCCESSOR = "successor"
    #: The same conversation, made shorter.
    CONTINUATION = "continuation"
    #: A conversation that began as a copy.
    BRANCH = "branch"


class ResetPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When chats are reset, and who is told."""

    mode: ResetMode = ResetMode.NONE
    #: The hour of the day, in the configured zone, at which a day of chats begins.
    at_hour: int = 4
    idle_minutes: int = 1440
    notify: bool = True
    notify_exclude_platforms: tuple[str, ...] = ("api_server", "webhook")
    #: A job older than this keeps no chat open.
    job_max_age_hours: float = 24.0


class Tokens(Struct, frozen=True, kw_only=True):
    """How many tokens went in and came out; they only ever grow."""

    input: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.input + self.output


class Chat(Struct, frozen=True, kw_only=True):
    """One chat. What was said in it is read by its id; a key has one open chat at most."""

    id: str
    #: Which conversation of which gateway it is; the same key gets the same open chat.
    key: str
    source: Source
    opened_at: datetime
    #: When it was last used: what its freshness is judged by.
    touched_at: datetime
    closed_at: datetime | None = None
    close_reason: CloseReason | None = None
    title: str | None = None
    #: Everybody in its place takes part; else it is the one person's it was begun by.
    shared: bool = False
    #: The chat it follows from, and how.
    follows: str | None = None
    kinship: Kinship | None = None
    tokens: Tokens = Tokens()
    by_model: Mapping[str, Tokens] = {}
    #: How many turns there are, those taken back not counted.
    turns: int = 0
    #: Why it was begun by itself, as long as nobody was told.
    notice: CloseReason | None = None
    #: Stopped by somebody: the next message begins another.
    suspended: bool = False
    #: Interrupted, to be gone on with, since then.
    resume_pending_at: datetime | None = None
    #: When what was said in it was handed on before it goes cold; None: not yet.
    flushed_at: datetime | None = None
    flush_failures: int = 0
    model: str | None = None
    #: Anything else a gateway keeps with it; plain JSON.
    extra: Mapping[str, Any] = {}

    @property
    def is_open(self) -> bool:
        """Whether it is still gone on with."""
        return self.closed_at is None

    @property
    def is_owed(self) -> bool:
        """Whether it was closed by itself before what was said in it was handed on."""
        return self.close_reason in BY_ITSELF and self.flushed_at is None


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """One message of a chat, in its place. Order is by position, never by time.

    What it holds is JSON, which never comes back to itself: a long transcript costs the garbage collector nothing.
    """

    position: int
    role: str
    #: Text, or any JSON.
    content: Any = None
    at: datetime
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[Any, ...] = ()
    #: References to files and the like; never their contents.
    attachments: tuple[Mapping[str, Any], ...] = ()
    tokens: int | None = None
    model: str | None = None
    #: Taken back: kept, not shown, not loaded.
    hidden: bool = False
    #: Anything else: reasoning, finish reason, the platform's own id of the message …
    extra: Mapping[str, Any] = {}


class Transcript(Struct, frozen=True, kw_only=True):
    """What was said in a chat, as of one moment."""

    chat: str
    turns: tuple[Turn, ...]
    #: The position the next turn would have had at that moment: whoever appends expecting it cannot miss a word.
    next: int
    #: At how many positions there is nothing to be read any more; none unless what is left was asked for.
    missing: int = 0


class ChatNews(Struct, frozen=True, kw_only=True):
    """What has happened to chats since somebody asked, for whoever keeps a copy of them."""

    #: What to ask behind the next time, and by what the event of that number is known again; empty where there is none.
    last: int
    mark: str = ""
    #: Those that were begun, came in, or in which something was said or taken back.
    changed: frozenset[str] = frozenset()
    #: Those that somebody forgot, and that did not come back.
    forgotten: frozenset[str] = frozenset()
    #: Those that were forgotten and did come back: what is said in them now may be something else.
    renewed: frozenset[str] = frozenset()
    #: Whether nothing else has happened. Not so where it was let go of with age, or the database is another one.
    is_all: bool = True
    #: Whether what was heard before happened in another past, as where a backup was put back.
    is_another: bool = False


class Found(Struct, frozen=True, kw_only=True):
    """A turn that was searched for."""

    chat: str
    position: int
    role: str
    at: datetime
    title: str | None = None
    #: Some of its text around what was found.
    snippet: str = ""
    #: Where in the snippet words stand that were asked for: from, to.
    marks: tuple[tuple[int, int], ...] = ()
