"""`perdure up`: watch every pane, save what changes, and tell who needs somebody."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial

import msgspec

from perdure.cli._setup import Setup
from perdure.cli.jobs_setup import jobs_of
from perdure.cli.save import keep
from perdure.daemon.answers import Answers
from perdure.daemon.daemon import Daemon
from perdure.daemon.listen import serve
from perdure.daemon.logs import set_up_logs
from perdure.daemon.protocol import socket_path
from perdure.daemon.world import World
from perdure.host.clock import now, ticking
from perdure.host.spool import spool_dir
from perdure.model.user import User
from perdure.tmux.sockets import socket_dir

log = logging.getLogger(__name__)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--all-users", action="store_true", help="every user's servers (root)")
    parser.add_argument("--verbose", action="store_true", help="say more of what is done, on stderr")


def run(args: argparse.Namespace) -> int:
    """Watch until told to end."""
    set_up_logs(sys.stderr, verbose=args.verbose)
    state_dir = Setup().state_dir
    asyncio.run(_watch(args, state_dir))
    return 0


async def _watch(args: argparse.Namespace, state_dir: str) -> None:
    daemon = Daemon(partial(open_world, args.all_users))

    def listen(watching: Daemon) -> asyncio.Task[None]:
        answers = Answers(watching)
        return asyncio.get_running_loop().create_task(
            serve(socket_path(state_dir), answers.answer, watching.feed, read=answers.read_events)
        )

    await daemon.run(listen, ready=partial(_say_ready, as_json=args.json))


def _say_ready(servers: int, panes: int, agents: int, *, as_json: bool) -> None:
    """Say that everything is seen now: whoever has waited for it goes on."""
    if as_json:
        line = msgspec.json.encode({"watching": {"servers": servers, "panes": panes, "agents": agents}})
        print(line.decode(), flush=True)
    else:
        print(f"Watching {panes} panes of {servers} servers, {agents} agents. Ctrl-C ends it.", flush=True)


def open_world(all_users: bool) -> World:
    """Build what the daemon stands on; called in the thread that uses it."""
    return _world(Setup(), all_users)


def _world(setup: Setup, all_users: bool) -> World:
    def users() -> Sequence[User]:
        return setup.everyone() if all_users else [setup.me]

    def sockets() -> list[tuple[User, str]]:
        return [(user, socket) for user in users() for socket in setup.sockets_of(user)]

    def socket_dirs() -> list[str]:
        # Also where none is yet: the first server of a user makes it.
        return [socket_dir(os.environ if user.uid == setup.me.uid else {}, user.uid) for user in users()]

    def spools() -> list[str]:
        # Those themselves too: the first record of an agent makes its directory.
        homes = [spool_dir(setup.state_dir_of(user)) for user in users()]
        below = [entry.path for home in homes if os.path.isdir(home) for entry in os.scandir(home) if entry.is_dir()]
        return [*homes, *below]

    def reload() -> World:
        return _world(setup.with_config_read_again(), all_users)

    def reopen() -> World:
        return _world(setup.with_store_opened_again(), all_users)

    users()  # so that who may not ask for everybody's is told so before anything begins
    return World(
        config=setup.config,
        host=setup.host,
        me=setup.me,
        state_dir=setup.state_dir,
        store=setup.store,
        jobs=jobs_of(setup),
        around=setup.surroundings(),
        sockets=sockets,
        socket_dirs=socket_dirs,
        spools=spools,
        keep=partial(keep, setup, say=log.info),
        restore_words=lambda socket: (sys.executable, "-m", "perdure", "restore", "--json", "--socket", socket),
        environ=dict(os.environ),
        reload=reload,
        reopen=reopen,
        now=now,
        ticking=ticking,
        close=setup.close,
    )
