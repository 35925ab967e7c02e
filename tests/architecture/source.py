"""The program's own source, parsed, for the checks beside this file."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SRC = os.path.join(ROOT, "src")
PACKAGE = "perdure"

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One module: its dotted name, its text, its tree."""

    name: str
    text: str
    tree: ast.Module

    @property
    def unit(self) -> str:
        """The part of the program it belongs to: `store` for perdure.store.sqlite, "" for the package itself."""
        return unit_of(self.name)

    def at(self, node: ast.stmt | ast.expr) -> str:
        """Return where that is, for a message."""
        return f"{self.name}:{node.lineno}"


class Finding(NamedTuple):
    """Something against the rules, and where."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def parse(name: str, text: str) -> Module:
    """Return a module from its source."""
    return Module(name, text, ast.parse(text))


@cache
def modules() -> list[Module]:
    """Return every module of the program; read once, for that takes longer than all that is asked of them."""
    found = []
    for folder, _, names in os.walk(os.path.join(SRC, PACKAGE)):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    found.append(parse(_dotted(path), file.read()))
    return sorted(found)


def unit_of(dotted: str) -> str:
    """Return the part of the program a dotted name belongs to."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else ""


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


class Import(NamedTuple):
    """One imported name: what it is called in full, what the module calls it, what that stands for."""

    dotted: str
    bound: str
    stands_for: str
    node: ast.stmt | ast.expr


def imports(module: Module) -> Iterator[Import]:
    """Yield every import, inside functions too; a literal `import_module("a.b")` counts."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                yield Import(alias.name, alias.asname or first, alias.name if alias.asname else first, node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                dotted = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                yield Import(dotted, alias.asname or alias.name, dotted, node)
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__") and node.args:
            wanted = node.args[0]
            if isinstance(wanted, ast.Constant) and isinstance(wanted.value, str):
                yield Import(wanted.value, "", "", node)


def report(findings: list[Finding]) -> str:
    """Return the findings as a failing test shows them."""
    return "\n" + "\n".join(map(str, findings))


def _called(call: ast.Call) -> str:
    target = call.func
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _dotted(path: str) -> str:
    parts = os.path.relpath(path, SRC).removesuffix(".py").split(os.sep)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
