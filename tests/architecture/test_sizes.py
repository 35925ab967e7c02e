"""How long a module and a function may get before it has to be taken apart."""

from __future__ import annotations

import ast

from tests.architecture.source import Finding, Function, Module, functions, modules, parse, report

MODULE_LINES = 600
FUNCTION_LINES = 60


def too_long(module: Module) -> list[Finding]:
    """Return the module when it has too many lines, and each function with too many lines of code."""
    lines = module.text.splitlines()
    found = []
    if len(lines) > MODULE_LINES:
        found.append(Finding(module.name, f"{len(lines)} lines, {MODULE_LINES} are allowed"))
    for function in functions(module.tree):
        count = _code_lines(function, lines)
        if count > FUNCTION_LINES:
            found.append(Finding(module.at(function), f"{function.name} has {count} lines of code"))
    return found


def _code_lines(function: Function, lines: list[str]) -> int:
    """Count a function's lines without its docstring, blank lines and comments."""
    counted = set(range(function.lineno, (function.end_lineno or function.lineno) + 1))
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        counted -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    texts = (lines[number - 1].strip() for number in counted)
    return sum(1 for text in texts if text and not text.startswith("#"))


def test_nothing_is_too_long() -> None:
    findings = [finding for module in modules() for finding in too_long(module)]
    assert not findings, report(findings)


def _function(body: str, lines: int) -> Module:
    return parse("perdure.cli.ls", 'def f():\n    """One.\n\n    Two.\n    """\n' + body * lines)


def test_a_long_function_is_found() -> None:
    assert too_long(_function("    x = 1\n", FUNCTION_LINES))
    assert not too_long(_function("    x = 1\n", FUNCTION_LINES - 1))


def test_comments_blank_lines_and_docstrings_are_free() -> None:
    assert not too_long(_function("    # why\n\n    x = 1\n", FUNCTION_LINES - 1))


def test_a_long_module_is_found() -> None:
    assert too_long(parse("perdure.cli.ls", "x = 1\n" * (MODULE_LINES + 1)))
    assert not too_long(parse("perdure.cli.ls", "x = 1\n" * MODULE_LINES))
