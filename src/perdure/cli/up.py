"""`perdure up`: watch every pane, save what changes, and tell who needs somebody."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from perdure.api.binding import chosen, listen
from perdure.cli._setup import Setup, path_argument
from perdure.cli.api_setup import Served
from perdure.cli.jobs_setup import jobs_of
from perdure.cli.render import counted
from perdure.cli.save import keep
from perdure.daemon.answers import Answers
from perdure.daemon.call import daemon_there
from perdure.daemon.daemon import Daemon
from perdure.daemon.listen import serve
from perdure.daemon.logs import set_up_logs
from perdure.daemon.protocol import socket_path
from perdure.daemon.world import World
from perdure.errors import PerdureError, UsageError
from perdure.host.clock import now, ticking
from perdure.host.spool import spool_dir
from perdure.model.config import ApiConfig
from perdure.model.user import User
from perdure.tmux.sockets import socket_dir

log = logging.getLogger(__name__)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--all-users", action="store_true", help="every user's servers (root)")
    parser.add_argument("--verbose", action="store_true", help="say more of what is done, on stderr")
    api = parser.add_argument_group("the dashboard, and the same for programs over HTTP")
    api.add_argument("--no-api", action="store_true", help="listen nowhere")
    api.add_argument("--port", type=_port, metavar="N", help="listen at this port (7717); 0: any that is free")
    api.add_argument("--host", metavar="ADDRESS", help="listen at this address (127.0.0.1)")
    api.add_argument("--unix-socket", type=path_argument, metavar="PATH", help="listen at a Unix socket instead")
    api.add_argument("--tls-cert", type=path_argument, metavar="FILE", help="with this certificate")
    api.add_argument("--tls-key", type=path_argument, metavar="FILE", help="and its key")
    api.add_argument("--insecure-bind", action="store_true", help="let it be reached from elsewhere without TLS")
    api.add_argument("--api-optional", action="store_true", help="go on without where nobody can listen")


def run(args: argparse.Namespace) -> int:
    """Watch until told to end."""
    set_up_logs(sys.stderr, verbose=args.verbose)
    setup = Setup()
    served = _served(args, setup)
    try:
        asyncio.run(_watch(args, setup.state_dir, served))
    finally:
        if served is not None:
            served.close()
    return 0


async def _watch(args: argparse.Namespace, state_dir: str, served: Served | None) -> None:
    daemon = Daemon(partial(open_world, args.all_users))

    def attend(watching: Daemon) -> asyncio.Task[None]:
        answers = Answers(watching)
        own = serve(
            socket_path(state_dir),
            answers.answer,
            watching.feed,
            read=answers.read_events,
            has_lease=watching.has_lease,
        )
        if served is None:
            return asyncio.get_running_loop().create_task(own)
        return asyncio.get_running_loop().create_task(_both(own, served.run(watching, answers)))

    def ready(servers: int, panes: int, agents: int) -> None:
        say_ready(servers, panes, agents, served, as_json=args.json)

    await daemon.run(attend, ready=ready)


async def _both(own: Coroutine[Any, Any, None], http: Coroutine[Any, Any, None]) -> None:
    """Answer at the socket and over HTTP. Without the socket there is no use in going on; without HTTP there is."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(own)
            group.create_task(_as_long_as_it_goes(http))
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _as_long_as_it_goes(http: Coroutine[Any, Any, None]) -> None:
    try:
        await http
    except Exception:
        log.exception("nobody is asked over HTTP any more; the panes are watched on")


def _served(args: argparse.Namespace, setup: Setup) -> Served | None:
    """Listen for HTTP before anything is begun; None where nobody is to be asked that way.

    Not when another daemon is there: that it is says more than that its port is in use.
    """
    config = _api_config(args, setup.config.api)
    if not config.enabled or daemon_there(setup.state_dir):
        return None
    try:
        return Served(setup, config, listen(config))
    except PerdureError as error:
        if not config.optional:
            raise
        log.warning("nobody is asked over HTTP: %s", error.message)
        return None


def _api_config(args: argparse.Namespace, config: ApiConfig) -> ApiConfig:
    """Return where to listen: as the arguments say, else the environment, else the configuration."""
    said = {
        "host": args.host,
        "port": args.port,
        "unix_socket": args.unix_socket and os.path.abspath(args.unix_socket),
        "tls_cert": args.tls_cert and os.path.abspath(args.tls_cert),
        "tls_key": args.tls_key and os.path.abspath(args.tls_key),
        "insecure_bind": args.insecure_bind or None,
        "optional": args.api_optional or None,
    }
    given = {name: value for name, value in said.items() if value is not None}
    if args.no_api:
        if given:
            raise UsageError("--no-api listens nowhere: nothing can be said of where and how.")
        return structs.replace(config, enabled=False)
    if (args.tls_cert is None) != (args.tls_key is None):
        raise UsageError("--tls-cert and --tls-key are needed together.")
    where = {"host", "port", "unix_socket"} & given.keys()
    if "unix_socket" in where and len(where) > 1:
        raise UsageError("--unix-socket takes the place of --host and --port.")
    if where - {"unix_socket"}:
        given["unix_socket"] = ""
    config = config if where else chosen(config, os.environ.get("PERDURE_PORT"))
    return structs.replace(config, **given, **({"enabled": True} if where else {}))


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError("must be a port from 0 to 65535")
    return int(text)


def say_ready(servers: int, panes: int, agents: int, served: Served | None, *, as_json: bool) -> None:
    """Say that everything is seen now: whoever has waited for it goes on."""
    if as_json:
        told: dict[str, object] = {"watching": {"servers": servers, "panes": panes, "agents": agents}}
        if served is not None:
            told["api"] = {"url": served.url}
        print(msgspec.json.encode(told).decode(), flush=True)
        return
    what = f"{counted(panes, 'pane')} of {counted(servers, 'server')}, {counted(agents, 'agent')}"
    print(f"Watching {what}. Ctrl-C ends it.", flush=True)
    if served is None:
        return
    # Only where a person reads it: what goes to a journal is read by others, too.
    link = served.link() if sys.stdout.isatty() else None
    if not served.is_for_browsers:
        print(f"For programs with a token: {served.url}", flush=True)
    elif link is None:
        print(f"Dashboard: {served.url} (`perdure open` logs you in)", flush=True)
    else:
        print(f"Dashboard: {link}\n(good once, within an hour; `perdure open` makes another)", flush=True)


def open_world(all_users: bool) -> World:
    """Build what the daemon stands on; called in the thread that uses it."""
    return _world(Setup(), all_users)


def _tidy_chats(setup: Setup) -> bool:
    # Only where chats do not stay for good, or have a mirror.
    from perdure.chats.retention import tidy
    from perdure.cli.chats_mirror import follow_in_mirror
    from perdure.cli.chats_setup import chats_of

    try:
        done = tidy(chats_of(setup))
    finally:
        # Also where nothing went: whoever forgot something may have been killed before its file was gone.
        follow_in_mirror(setup)
    if done.gone:
        log.info("let go of %d chats that were kept long enough", len(done.gone))
    return done.is_more


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
        tidy_chats=partial(_tidy_chats, setup),
        restore_words=lambda socket: (sys.executable, "-m", "perdure", "restore", "--json", "--socket", socket),
        environ=dict(os.environ),
        reload=reload,
        reopen=reopen,
        now=now,
        ticking=ticking,
        close=setup.close,
    )
