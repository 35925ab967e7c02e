"""What the acceptance tests share: reading answers, waiting for tmux, being somebody else."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from tests.at_rest import rest_of
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer
from tests.waiting import wait_for as wait_for

#: What a JSON object has to hold: names, and the types each may have.
Fields = Mapping[str, type | tuple[type, ...]]

#: The number and group of an account that owns nothing.
NOBODY = 65534


def only_json(ran: Ran) -> dict[str, Any]:
    """Return the one JSON object on standard output; fails the test when anything else is there."""
    assert ran.out.endswith("\n"), ran
    assert ran.out.count("\n") == 1, ran.out
    answer = ran.json
    assert isinstance(answer, dict), answer
    return answer


def sentence(ran: Ran) -> str:
    """Return what the program said on standard error; fails the test when that is not one sentence for a person."""
    assert "Traceback" not in ran.err, ran.err
    lines = ran.err.splitlines()
    assert len(lines) == 1, ran
    assert lines[0].startswith("perdure"), ran.err
    return lines[0]


def has_fields(value: Mapping[str, object], fields: Fields) -> None:
    """Fail the test unless every field is there and of its type. A bool is no int here."""
    for name, kind in fields.items():
        assert name in value, (name, value)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        assert type(value[name]) in kinds, (name, value[name])


def settle(tmux: TmuxServer) -> None:
    """Wait until every pane runs its program and all of them wait: a shell has read its files then, and asks.

    Windows keep the names they have then; tmux would go on renaming them for half a second.
    """
    tmux.run("set-option", "-g", "automatic-rename", "off")
    wait_for(rest_of(tmux), "programs that wait")


def save(perdure: Perdure, *args: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Save the one server there is, which has to go well, and return its line."""
    servers = only_json(perdure.ok("save", "--json", *args, env=env))["servers"]
    assert len(servers) == 1, servers
    line: dict[str, Any] = servers[0]
    return line


def history(perdure: Perdure) -> list[dict[str, Any]]:
    """Return the snapshots, newest first."""
    found: list[dict[str, Any]] = only_json(perdure.ok("history", "--json"))["snapshots"]
    return found


def snapshot(perdure: Perdure, name: str = "latest", target: str | None = None) -> dict[str, Any]:
    """Return a snapshot as `show` gives it."""
    words = ["show", "--json", name, *([target] if target is not None else [])]
    found: dict[str, Any] = only_json(perdure.ok(*words))["snapshot"]
    return found


def topology(perdure: Perdure, name: str = "latest") -> dict[str, Any]:
    """Return a snapshot's sessions, windows, links and panes."""
    found: dict[str, Any] = snapshot(perdure, name)["topology"]
    return found


def is_whole(perdure: Perdure) -> bool:
    """Say whether everything in the store reads back, and show what does not."""
    ran = perdure("check", "--json")
    print(ran.out, ran.err)
    return ran.code == 0 and bool(only_json(ran)["ok"])


def configure(home: PrivateHome, toml: str) -> None:
    """Write the test's config.toml."""
    directory = os.path.join(home.home, ".config", "perdure")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "config.toml"), "w") as file:
        file.write(toml)


def manifests(home: PrivateHome) -> list[dict[str, Any]]:
    """Return the manifests beside the database; fails the test when one does not parse."""
    directory = os.path.join(home.state, "latest")
    found = []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".json") and not name.startswith("."):
            with open(os.path.join(directory, name), "rb") as file:
                found.append(msgspec.json.decode(file.read()))
    return found


@functools.cache
def unprivileged() -> Sequence[str]:
    """Return what to put before a command so that it runs without root's rights; skips the test where that fails.

    The interpreter itself may lie where only root can go. Then the command keeps the right to read everything,
    which is no help with writing or with being let in by a server.
    """
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed")
    become = [setpriv, "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    for prefix in ([*become], [*become, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]):
        tried = subprocess.run([*prefix, sys.executable, "-c", "import perdure"], capture_output=True, check=False)
        if tried.returncode == 0:
            return prefix
    pytest.skip("nobody else can start this interpreter")


def run_unprivileged(*args: str, env: Mapping[str, str] | None = None) -> Ran:
    """Run the program as somebody who is not root."""
    done = subprocess.run(
        [*unprivileged(), *Perdure().argv(*args)],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def hand_over(home: PrivateHome) -> None:
    """Give the private home to whoever `run_unprivileged` is."""
    os.makedirs(home.state, mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        os.chmod(home.root, 0o711)
        for directory, _, names in os.walk(home.root):
            for path in (directory, *(os.path.join(directory, name) for name in names)):
                if directory != home.root or path != home.root:
                    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
