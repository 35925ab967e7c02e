"""`perdure import`: what other tools saved, as a snapshot beside our own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from datetime import UTC, datetime

from perdure.cli._setup import Setup, with_setup
from perdure.cli.render import counted, print_json
from perdure.compat.resurrect import from_resurrect, saved_at
from perdure.compat.tmux_persist import from_tsv
from perdure.compat.tmux_state_import import from_manifest
from perdure.errors import ImportFailed, NotFound
from perdure.host.users import user_by_name
from perdure.model.server import Server
from perdure.model.snapshot import Capture
from perdure.tmux.sockets import canonical, socket_dir

#: Far more than any of these tools writes; a device has no end.
_BIGGEST = 64 << 20

FORMATS = ("tmux-state", "tmux-persist", "resurrect")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("file", metavar="FILE")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    raw, written_at = _read(args.file)
    capture = _READERS[args.format](raw, args.file, written_at, setup)
    saved = setup.store.save_snapshot(capture, {}, origin=args.format)
    counts = {
        "sessions": len(capture.topology.sessions),
        "windows": len(capture.topology.windows),
        "panes": len(capture.topology.panes),
        "agents": capture.topology.agents,
    }
    if args.json:
        print_json({"snapshot": saved.id, "result": "saved" if saved.new else "unchanged", **counts})
    else:
        what = ", ".join(counted(number, name.removesuffix("s")) for name, number in counts.items())
        print(f"{'Imported' if saved.new else 'Already there'}: {saved.id} ({what})")
    return 0


run = with_setup(_run)


def _read(path: str) -> tuple[bytes, datetime]:
    try:
        with open(path, "rb") as file:
            raw, written_at = file.read(_BIGGEST + 1), os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}.") from None
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror}.") from error
    if len(raw) > _BIGGEST:
        raise ImportFailed(f"{path} is bigger than {_BIGGEST >> 20} MiB, which no such file is.")
    return raw, datetime.fromtimestamp(written_at, UTC)


def _tmux_state(raw: bytes, path: str, written_at: datetime, setup: Setup) -> Capture:
    return from_manifest(raw, server=_server(setup))


def _tmux_persist(raw: bytes, path: str, written_at: datetime, setup: Setup) -> Capture:
    user = os.path.basename(path).removesuffix(".tsv")
    return from_tsv(raw, server=_server(setup, user), taken_at=written_at)


def _resurrect(raw: bytes, path: str, written_at: datetime, setup: Setup) -> Capture:
    return from_resurrect(raw, server=_server(setup), taken_at=saved_at(os.path.realpath(path)) or written_at)


_READERS: dict[str, Callable[[bytes, str, datetime, Setup], Capture]] = dict(
    zip(FORMATS, (_tmux_state, _tmux_persist, _resurrect), strict=True)
)


def _server(setup: Setup, name: str = "") -> Server:
    """These formats know one server a user: the one on the default socket."""
    user = (user_by_name(name) if name else None) or setup.me
    socket = canonical(os.path.join(socket_dir(os.environ, user.uid), "default"))
    return Server(host=setup.host, user=user.name, uid=user.uid, socket=socket)
