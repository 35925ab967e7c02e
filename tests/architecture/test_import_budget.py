"""`perdure save` starts cold, from timers and hooks: what it imports is what it costs."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

#: What a save with nothing to save must not load, and why. A name stands for everything below it.
TOO_DEAR = {
    "asyncio": "the save path is plain functions",
    "click": "argparse does it at a third of the cost",
    "concurrent": "nothing on the way to a save needs a pool before there is a server",
    "dataclasses": "msgspec Structs do it, and are there anyway",
    "email": "comes with urllib and importlib.metadata",
    "http": "nothing is fetched",
    "importlib.metadata": "the version is a constant",
    "inspect": "comes with typing_extensions",
    "logging": "not before there is something to log",
    "platformdirs": "three lines of os.environ",
    "psutil": "only where there is no /proc",
    "psycopg": "only with a postgresql:// store",
    "rich": "only for tables people look at",
    "tempfile": "brings shutil, random and with them every compression module",
    "tomllib": "only when there is a configuration file",
    "typing_extensions": "msgspec asks for it, for what Python has itself",
    "urllib": "brings http and email",
    "zoneinfo": "brings sysconfig; only days of retention need it",
    "zstandard": "zlib is in the standard library",
}

#: Prints what `perdure save --json` prints, an empty line, its exit code, and every module it loaded.
SAVE = """
import sys
before = set(sys.modules)
from perdure.cli.main import main
code = main(["save", "--json"])
print("\\n" + str(code), *sorted(set(sys.modules) - before), sep="\\n", flush=True)
"""


def too_dear(loaded: list[str]) -> dict[str, str]:
    """Return what was loaded although it is on the list, with the reason."""
    return {
        name: why for name, why in TOO_DEAR.items() if any(f"{module}.".startswith(f"{name}.") for module in loaded)
    }


def run(program: str) -> tuple[str, list[str]]:
    """Return what a program printed before and after its last empty line, in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed, _, names = done.stdout.rpartition("\n\n")
    return printed, names.splitlines()


def test_a_save_loads_nothing_dear() -> None:
    printed, (code, *loaded) = run(SAVE)
    assert code == "0", printed
    assert "servers" in msgspec.json.decode(printed)
    assert "perdure.cli.main" in loaded
    assert too_dear(loaded) == {}


#: What only a daemon that is asked over HTTP needs, and nobody else is to wait for.
OF_THE_API = ("litestar", "uvicorn", "websockets", "httptools", "httpx")

#: Runs a command, whatever comes of it, and prints every module it loaded behind an empty line.
COMMAND = """
import contextlib, io, sys
from perdure.cli.main import main
with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
    main({words!r})
print("\\n", *sorted(sys.modules), sep="\\n", flush=True)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "--json"],
        ["open", "--json"],
        ["token", "ls", "--json"],
        ["token", "new", "--json"],
        ["send", "nobody", "x", "--json"],
        ["wait", "nobody", "--until", "idle", "--json"],
        ["up", "--help"],
        ["up", "--port", "wrong"],
    ],
)
def test_only_a_daemon_loads_what_http_needs(words: list[str]) -> None:
    _, loaded = run(COMMAND.format(words=words))
    assert "perdure.cli.main" in loaded
    assert [name for name in loaded if name.split(".")[0] in OF_THE_API] == []


@pytest.mark.parametrize("name", ["email.message", "importlib.metadata", "asyncio"])
def test_something_dear_is_noticed(name: str) -> None:
    _, loaded = run(f"import sys, {name}\nprint('\\n', *sys.modules, sep='\\n')")
    assert [dear for dear in too_dear(loaded) if f"{name}.".startswith(f"{dear}.")]


def test_a_name_stands_for_what_is_below_it_and_nothing_else() -> None:
    assert set(too_dear(["rich.table", "richer", "emailer"])) == {"rich"}
