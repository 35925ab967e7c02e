"""What most commands need: who we are, where our files lie, which servers are meant.

The first half must stay light: it runs before a save has asked its servers.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from perdure.errors import Refused
from perdure.host import places
from perdure.host.users import current_user, read_roster, shell_of, user_by_name, user_by_uid
from perdure.model.user import User
from perdure.snapshots.ask import Question, ask
from perdure.tmux.sockets import canonical, find_sockets, owner_of, sockets_below, users_with_sockets

if TYPE_CHECKING:
    from datetime import datetime

    from perdure.model.config import Config
    from perdure.model.plan import Kept
    from perdure.model.server import Server
    from perdure.model.snapshot import Missed, Snapshot
    from perdure.snapshots.look import Looked, Surroundings
    from perdure.store.store import Store


#: What login gives everybody before any file of theirs was read.
_PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
#: What is about this process, or about the service it is, and not about whose process it is.
_NOT_PASSED_ON = ("TMUX", "PERDURE_", "LISTEN_", "SYSTEMD_EXEC_PID", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET")


class Setup:
    """The ground a command stands on; everything is looked up when first asked for."""

    def __init__(self) -> None:
        # A service at boot may have none, and then not even tmux would be found.
        os.environ.setdefault("PATH", _PLAIN_PATH)
        self.me = current_user()
        self.state_dir = places.state_dir(os.environ, self.me.home)
        self.config_path = places.config_path(os.environ, self.me.home)
        self._config: Config | None = None
        self._store: Store | None = None
        #: The store where it can only be read, and what is still to be said about that.
        self._read_only: tuple[Store, str] | None = None

    @property
    def config(self) -> Config:
        """The user's configuration."""
        if self._config is None:
            from perdure.host.config import read_config

            named = bool(os.environ.get("PERDURE_CONFIG"))
            self._config = read_config(self.config_path, home=self.me.home, required=named)
            if self._config.agents:
                from perdure.agents import clashes

                for sentence in clashes(self._config.agents):
                    print(f"perdure: {sentence}", file=sys.stderr)
        return self._config

    @property
    def host(self) -> str:
        """This machine's name in the store."""
        return self.config.host or os.uname().nodename

    @property
    def store(self) -> Store:
        """The store, opened once."""
        if self._store is None:
            from perdure.store import open_store

            self._store = open_store(places.store_url(os.environ, self.state_dir), state_dir=self.state_dir)
        return self._store

    @property
    def readable(self) -> Store:
        """The store for a command that only looks: one that cannot be written is said so, once, and read."""
        store, sentence = self._for_reading()
        if sentence:
            print(f"perdure: {sentence}", file=sys.stderr)
            self._read_only = store, ""
        return store

    def close(self) -> None:
        """Let go of the store, if it was opened."""
        for store in (self._store, self._read_only and self._read_only[0]):
            if store is not None:
                store.close()

    def ask(self, args: argparse.Namespace) -> list[Question]:
        """Ask the servers the arguments mean: one socket, everyone's, or this user's."""
        # Without a file the defaults hold, and msgspec need not be imported before tmux is at work.
        configured = self.config.tmux if self._is_configured() else None
        timeout = configured.timeout_seconds if configured else 5.0
        if args.socket is not None:
            socket = canonical(args.socket)
            return [ask(socket, self._holder(socket), timeout=timeout)]
        users = self.everyone() if args.all_users else [self.me]
        extra = configured.sockets if configured else ()
        return [ask(socket, user, timeout=timeout) for user in users for socket in self._sockets_of(user, extra)]

    def ask_user(self, user: User, also: Sequence[str] = ()) -> list[Question]:
        """Ask every server of one user, and these sockets besides."""
        config = self.config.tmux
        sockets = dict.fromkeys([*self._sockets_of(user, config.sockets), *also])
        return [ask(socket, user, timeout=config.timeout_seconds, knock=True) for socket in sockets]

    def users(self, args: argparse.Namespace) -> list[User]:
        """Return whose servers the arguments mean."""
        if args.socket is not None:
            return [self._holder(canonical(args.socket))]
        return self.everyone() if args.all_users else [self.me]

    def sockets_of(self, user: User) -> list[str]:
        """Return the sockets of a user's servers, there or not."""
        return self._sockets_of(user, self.config.tmux.sockets if user.uid == self.me.uid else ())

    def with_config_read_again(self) -> Setup:
        """Return the same ground with the configuration as it is now, and the same open store. Raises what is wrong."""
        fresh = Setup()
        fresh.config  # noqa: B018 - read now, so that a mistake changes nothing
        fresh._store, fresh._read_only = self._store, self._read_only
        return fresh

    def user_of(self, server: Server) -> User:
        """Return whose server it is."""
        if server.uid == self.me.uid:
            return self.me
        return user_by_uid(server.uid) or User(server.user, server.uid, server.uid, "/")

    def with_store_opened_again(self) -> Setup:
        """Return the same ground with the store that is there now. Raises `StoreUnusable`, and then nothing has changed."""
        fresh = Setup()
        fresh._config = self._config
        fresh.store  # noqa: B018 - opened now, so that the one there was is only let go of for it
        self.close()
        return fresh

    def state_dir_of(self, user: User) -> str:
        """Return where what belongs to a user is kept."""
        return self.state_dir if user.uid == self.me.uid else places.state_dir({}, user.home)

    def environ_of(self, user: User) -> dict[str, str]:
        """Return what a user's programs find in their environment when we have to start their server for them.

        One's own is what one has, and where that is nothing, as after a boot, what a login gives; of root's nothing
        is anybody else's business.
        """
        own = {"HOME": user.home, "USER": user.name, "LOGNAME": user.name, "SHELL": shell_of(user)}
        if user.uid == self.me.uid:
            from perdure.agents.children import marks_a_child

            mine = {
                name: value
                for name, value in os.environ.items()
                if not name.startswith(_NOT_PASSED_ON) and not marks_a_child(name)
            }
            return {**own, **mine}
        passed = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM")
        return {"PATH": _PLAIN_PATH, **{name: os.environ[name] for name in passed if name in os.environ}, **own}

    def _is_configured(self) -> bool:
        return bool(os.environ.get("PERDURE_CONFIG")) or os.path.exists(self.config_path)

    def _sockets_of(self, user: User, extra: Sequence[str]) -> list[str]:
        if user.uid == self.me.uid:
            return find_sockets(os.environ, user.uid, extra)
        # Where our own sockets are says little about theirs: they may be in the usual place.
        return list(dict.fromkeys([*find_sockets({}, user.uid), *sockets_below(os.environ, user.uid)]))

    def look(self, questions: list[Question], now: datetime, *, scrollback: bool = False) -> list[Looked | Missed]:
        """Return what these servers hold."""
        from perdure.snapshots.look import look

        return look(questions, self.surroundings(), now, scrollback=scrollback)

    def surroundings(self) -> Surroundings:
        """Return what a look depends on besides the servers."""
        from perdure.host.files import Files
        from perdure.host.spool import spool_dir
        from perdure.snapshots.look import Surroundings
        from perdure.store.foreign import query

        def view_of(user: User) -> Files:
            return Files(user.home, spool=spool_dir(self.state_dir_of(user)), query=query)

        return Surroundings(
            config=self.config,
            host=self.host,
            me=self.me,
            view_of=view_of,
            earlier=self._earlier,
            others=self._others,
            journalled=self._journalled,
        )

    def _for_reading(self) -> tuple[Store, str]:
        """Return the store, and the sentence to say when it can only be read."""
        from perdure.errors import StoreDamaged, StoreTooNew, StoreUnusable

        if self._read_only is not None:
            return self._read_only
        try:
            return self.store, ""
        except (StoreDamaged, StoreTooNew):
            raise
        except StoreUnusable as error:
            from perdure.cli._reading import open_for_reading

            self._read_only = open_for_reading(places.store_url(os.environ, self.state_dir), self.state_dir, error)
            return self._read_only

    def _earlier(self, server: Server) -> Snapshot | None:
        """Return the last snapshot of a server; where the store cannot be read, the manifest beside it has it too."""
        from perdure.errors import StoreUnusable

        try:
            return self._for_reading()[0].latest_snapshot(server)
        except StoreUnusable:
            return self._manifests().get(server.key)

    def _others(self, uid: int, looked_at: Collection[Server]) -> list[Snapshot]:
        """Return the last snapshots of a user's servers that are not looked at now, as far as they were seen lately."""
        from datetime import timedelta

        from perdure.errors import StoreUnusable
        from perdure.host.clock import now

        keys = {server.key for server in looked_at}
        try:
            known = self._for_reading()[0].servers(host=self.host, uid=uid, seen_since=now() - timedelta(days=2))
        except StoreUnusable:
            return [each for key, each in self._manifests().items() if key not in keys]
        found = (self._earlier(server) for server in known if server.key not in keys)
        return [snapshot for snapshot in found if snapshot]

    def _journalled(self, restore: str, pane: str) -> Kept | None:
        """Return what a restore has kept of a pane of its snapshot."""
        from perdure.errors import StoreUnusable

        try:
            restores = self._for_reading()[0].list_restores()
        except StoreUnusable:
            return None
        outcomes = next((each.outcomes for each in restores if each.id == restore), {})
        return outcomes[pane].kept if pane in outcomes else None

    def _manifests(self) -> dict[str, Snapshot]:
        from perdure.errors import StoreUnusable
        from perdure.store.manifest import latest_manifests

        try:
            return latest_manifests(self.state_dir)
        except StoreUnusable:
            return {}  # looking works without anything kept; saving will say what is wrong

    def _holder(self, socket: str) -> User:
        """Root looks at a socket as whoever owns it; anybody else only at their own."""
        if self.me.uid != 0:
            return self.me
        try:
            uid = owner_of(socket)
        except OSError:
            uid = None
        return self.me if uid in (None, 0) else user_by_uid(uid or 0) or User(str(uid), uid or 0, uid or 0, "/")

    def everyone(self) -> list[User]:
        """Return everybody who may have servers. Raises `Refused` unless we are root."""
        if self.me.uid != 0:
            raise Refused("--all-users is for root: nobody else may look at other people's panes.")
        found = [self.me]
        found += [user_by_uid(uid) or User(str(uid), uid, uid, "/") for uid in users_with_sockets(os.environ) if uid]
        found += [user for name in read_roster(self.config.roster) if (user := user_by_name(name)) and user.uid]
        return list({user.uid: user for user in found}.values())


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that say which servers are meant."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--all-users", action="store_true", help="every user's servers, each looked at as that user (root)"
    )
    which.add_argument("--socket", metavar="PATH", type=path_argument, help="only the server on this socket")


def path_argument(text: str) -> str:
    """Take an argument for a path; an empty one is a script's variable that was not set."""
    if not text:
        raise argparse.ArgumentTypeError("a path cannot be empty")
    return text


def count_argument(text: str) -> int:
    """Take an argument for how many."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a whole number from 1 to 999999999")
    return int(text)


def with_setup(work: Callable[[Setup, argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Return `work` as a command's `run`, with the store closed behind it."""

    def run(args: argparse.Namespace) -> int:
        setup = Setup()
        try:
            return work(setup, args)
        finally:
            setup.close()

    return run
