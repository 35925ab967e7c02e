"""What part of a cold save is Python itself, and what part is loading the program."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from bench.sandbox import Sandbox, run
from bench.servers import Server
from bench.timing import Step, timed

BARE = "python -c pass"
IMPORTS = "python, imports of a save"

#: Saves once and prints the modules that took, in the order they were loaded.
_LOADED = """
import sys
before = set(sys.modules)
from perdure.cli.main import main
main(["save", "--no-scrollback", "--json"])
print()
print(*(name for name in sys.modules if name not in before))
"""


def steps(server: Server, sandbox: Sandbox) -> dict[str, Step]:
    """Return a Python that does nothing, and one that only loads what a save loads."""
    loads = f"import {', '.join(_modules(server, sandbox))}"
    return {
        BARE: lambda: timed(lambda: _python("pass", server.environ)),
        IMPORTS: lambda: timed(lambda: _python(loads, server.environ)),
    }


def _modules(server: Server, sandbox: Sandbox) -> list[str]:
    printed = _python(_LOADED, {**server.environ, "PERDURE_STATE_DIR": sandbox.directory("state")})
    return printed.splitlines()[-1].split()


def _python(program: str, environ: Mapping[str, str]) -> str:
    return run([sys.executable, "-c", program], environ)
