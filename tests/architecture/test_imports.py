"""Which part of the program may import which: left may be imported by right, never back, never sideways.

model, errors <- ports <- agents | tmux | host | store <- snapshots | live | chats | jobs | compat | hooks
<- restore <- daemon <- api ; cli, tui

`demo` stands beside `daemon`, for the command line alone.
"""

from __future__ import annotations

import pytest

from tests.architecture.source import PACKAGE, Finding, Module, imports, modules, parse, report, unit_of

NOUNS = frozenset({"model", "errors"})
PORTS = NOUNS | {"ports"}
EDGES = frozenset({"agents", "tmux", "host", "store"})
CHAINS = frozenset({"snapshots", "live", "chats", "jobs", "compat", "hooks"})
BELOW_DAEMON = PORTS | EDGES | CHAINS | {"restore"}

ALLOWED: dict[str, frozenset[str]] = {
    "": frozenset(),
    **dict.fromkeys(NOUNS, frozenset()),
    "ports": NOUNS,
    **dict.fromkeys(EDGES, PORTS),
    **dict.fromkeys(CHAINS, PORTS | EDGES),
    # Whatever was brought back is looked at again, by the same eyes.
    "restore": PORTS | EDGES | {"snapshots"},
    "demo": PORTS | EDGES | {"snapshots", "restore"},
    "daemon": BELOW_DAEMON,
    "api": BELOW_DAEMON | {"daemon"},
    "cli": BELOW_DAEMON | {"daemon", "api", "demo"},
    "tui": BELOW_DAEMON | {"daemon", "api"},
    "__main__": frozenset({"cli"}),
}


def forbidden_imports(module: Module) -> list[Finding]:
    """Return every import of ours that goes back, sideways or relative. The bare package (the version) is for all."""
    if module.unit not in ALLOWED:
        return [Finding(module.name, f"{module.unit} has no place in the table of imports")]
    allowed = ALLOWED[module.unit] | {module.unit, ""}
    found = []
    for dotted, _, _, node in imports(module):
        if dotted.startswith("."):
            found.append(Finding(module.at(node), "a relative import"))
        elif dotted.split(".")[0] == PACKAGE and _imported_unit(dotted) not in allowed:
            found.append(Finding(module.at(node), f"{module.unit or PACKAGE} imports {_imported_unit(dotted)}"))
    return found


def _imported_unit(dotted: str) -> str:
    """`from perdure import x` is a part of the program when there is such a part, else a name in the package."""
    unit = unit_of(dotted)
    return "" if dotted == f"{PACKAGE}.{unit}" and unit not in ALLOWED else unit


def test_imports_follow_the_table() -> None:
    findings = [finding for module in modules() for finding in forbidden_imports(module)]
    assert not findings, report(findings)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("perdure.model.pane", "from perdure.errors import NotFound"),
        ("perdure.store.sqlite", "import perdure.tmux.run"),
        ("perdure.agents.some", "from perdure import host"),
        ("perdure.snapshots.plan", "def f():\n    from perdure.compat import tsv"),
        ("perdure.tmux.run", "if TYPE_CHECKING:\n    from perdure.cli.main import main"),
        ("perdure.store", "importlib.import_module('perdure.cli')"),
        ("perdure.cli.save", "from . import render"),
        ("perdure.cli.save", "from ..store import open_store"),
        ("perdure", "from perdure.errors import PerdureError"),
        ("perdure.helpers", ""),
    ],
)
def test_a_forbidden_import_is_found(name: str, text: str) -> None:
    assert forbidden_imports(parse(name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("perdure.model.pane", "from perdure.model.process import Process"),
        ("perdure.store.sqlite", "from perdure import __version__"),
        ("perdure.snapshots.capture", "from perdure.tmux import run\nfrom perdure.ports import HostView"),
        ("perdure.cli.main", "import perdure.snapshots.capture"),
        ("perdure.__main__", "from perdure.cli.main import main"),
    ],
)
def test_an_allowed_import_is_left_alone(name: str, text: str) -> None:
    assert not forbidden_imports(parse(name, text))
