"""Every public name says what a caller may rely on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.source import Finding, Function, Module, functions, modules, parse, report

PORTS = "perdure.ports"


def undocumented(module: Module, contracts: frozenset[str]) -> list[Finding]:
    """Return every public module, class, function and method without a docstring.

    A method named in `contracts` is free, outside the ports themselves: what it has to do is said there, once.
    """
    if any(_is_private(part) for part in module.name.split(".")):
        return []
    found = [] if ast.get_docstring(module.tree) else [Finding(module.name, "the module has no docstring")]
    free = frozenset() if module.name == PORTS else contracts
    for node, is_method in _public(module.tree, inside_class=False):
        if not ast.get_docstring(node) and not (is_method and node.name in free):
            found.append(Finding(module.at(node), f"{node.name} has no docstring"))
    return found


def _public(tree: ast.Module | ast.ClassDef, *, inside_class: bool) -> Iterator[tuple[Function | ast.ClassDef, bool]]:
    """Yield (definition, whether it is a method) of what can be reached from outside. Overloads share one docstring."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not _is_private(node.name):
            if not (_is_dunder(node.name) or _is_overload(node)):
                yield node, inside_class and not isinstance(node, ast.ClassDef)
            if isinstance(node, ast.ClassDef):
                yield from _public(node, inside_class=True)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not _is_dunder(name)


def _is_overload(node: Function | ast.ClassDef) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in node.decorator_list)


def test_every_public_name_has_a_docstring() -> None:
    every = modules()
    ports = next(module for module in every if module.name == PORTS)
    contracts = frozenset(function.name for function in functions(ports.tree))
    findings = [finding for module in every for finding in undocumented(module, contracts)]
    assert not findings, report(findings)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        '"""A module."""\ndef f(): pass',
        '"""A module."""\nasync def f(): pass',
        '"""A module."""\nclass C: pass',
        '"""A module."""\nclass C:\n    """A class."""\n    def f(self): pass',
        '"""A module."""\ndef score(): pass',
    ],
)
def test_a_missing_docstring_is_found(text: str) -> None:
    assert undocumented(parse("perdure.cli.ls", text), frozenset({"score"}))


def test_private_names_and_kept_contracts_are_free() -> None:
    text = '"""A module."""\ndef _f(): pass\nclass C:\n    """A class."""\n    def score(self): pass\n'
    assert not undocumented(parse("perdure.agents.some", text), frozenset({"score"}))
    assert undocumented(parse(PORTS, text), frozenset({"score"}))
    assert not undocumented(parse("perdure.agents._some", "x = 1"), frozenset())
