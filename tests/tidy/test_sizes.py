"""Sizes: a file, a function or a signature that outgrows its limit wants to be cut."""

import ast
from collections.abc import Iterator

import pytest
from findings import assert_none
from walking import walk

FILE_LINES = 400
TEST_FILE_LINES = 600
FUNCTION_LINES = 70
PARAMETERS = 6
DOCSTRING_LINES = 12


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from walk(tree, ast.FunctionDef, ast.AsyncFunctionDef)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    named = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in named if name not in {"self", "cls"}])


def prose_lines(docstring: str) -> int:
    """Drawings and examples, which are indented, do not count."""
    lines = docstring.splitlines()
    return len([line for line in lines if line.strip() and not line.startswith("    ")])


def faults(name: str, text: str, tree: ast.Module) -> list[str]:
    found = []
    in_tests = name.startswith("tests/")
    options = name.startswith("gateway/cli/")  # a command's parameters are what `--help` lists
    lines = text.count("\n")
    limit = TEST_FILE_LINES if in_tests else FILE_LINES
    if lines > limit:
        found.append(f"{name}: {lines} lines, at most {limit}")
    docstring = ast.get_docstring(tree)
    if not docstring and text.strip() and not in_tests:
        found.append(f"{name}: no docstring")
    elif prose_lines(docstring or "") > DOCSTRING_LINES:
        found.append(f"{name}: docstring of more than {DOCSTRING_LINES} lines")
    for function in functions(tree):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > FUNCTION_LINES:
            found.append(f"{name}: {function.name} has {length} lines")
        if not in_tests and not options and parameters(function) > PARAMETERS:
            found.append(f"{name}: {function.name} has {parameters(function)} parameters")
    return found


def test_sizes(everything) -> None:
    assert_none(line for each in everything for line in faults(each.name, each.text, each.tree))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('"""A."""\n' + "x = 1\n" * FILE_LINES, "lines, at most"),
        ("x = 1\n", "no docstring"),
        ('"""A\n' + "b\n" * DOCSTRING_LINES + '"""\n', "docstring of more"),
        ('"""A."""\ndef f():\n' + "    x = 1\n" * FUNCTION_LINES, "f has 71 lines"),
        ('"""A."""\ndef f(a, b, c, d, *, e, g, h): ...\n', "f has 7 parameters"),
    ],
)
def test_what_is_too_large_is_found(text: str, fault: str) -> None:
    assert fault in "\n".join(faults("gateway/x.py", text, ast.parse(text)))
