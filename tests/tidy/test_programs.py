"""Programs within texts name what exists.

Tests run small programs in processes of their own, and controls replace functions there. No type
checker reads them, so a renamed class would end such a program before it shows anything.
"""

import ast
import re
from collections.abc import Iterator
from textwrap import dedent

import pytest
from findings import assert_none
from walking import walk

OURS = ("gateway", "backends", "router", "ledger", "dashboard", "deploy")
INSIDE = "backends.engine.inside"  # of the engine's own interpreter, which imports them by stem
IMPORT = re.compile(r"^\s*(?:.*; )?(?:from|import) [a-z]", re.MULTILINE)


class Names:
    """The names that each module of a tree has at its top level."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        self._trees = trees
        self._known: dict[str, set[str]] = {}

    def has_module(self, module: str) -> bool:
        return module in self._trees or any(name.startswith(f"{module}.") for name in self._trees)

    def has(self, module: str, name: str) -> bool:
        if self.has_module(f"{module}.{name}"):
            return True
        tree = self._trees.get(module)
        if tree is None:
            return False
        if module not in self._known:
            self._known[module] = set(_bound(tree))
        return name in self._known[module] or "__getattr__" in self._known[module]


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in walk(tree, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        yield node.name
    for node in walk(tree, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
    for node in walk(tree, ast.Import, ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)


def programs(tree: ast.Module) -> Iterator[tuple[int, ast.Module]]:
    """Texts that import from the product and are Python, with their lines."""
    for node in walk(tree, ast.JoinedStr, ast.Constant):
        text = _text(node)
        if text is None or not IMPORT.search(text):
            continue
        try:
            yield node.lineno, ast.parse(dedent(text))
        except SyntaxError:
            continue


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "0" for part in node.values]
        return "".join(map(str, parts))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def unknown_names(program: ast.Module, names: Names) -> list[str]:
    """What a program imports from the product, or asks of a module of it, that is not there."""
    modules: dict[str, str] = {}
    faults = []
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if names.has_module(f"{INSIDE}.{alias.name}"):
                    modules[alias.asname or alias.name] = f"{INSIDE}.{alias.name}"
                elif alias.name.split(".")[0] in OURS and not names.has_module(alias.name):
                    faults.append(alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if not names.has(node.module, alias.name):
                    faults.append(whole)
                elif names.has_module(whole):
                    modules[alias.asname or alias.name] = whole
    for node in ast.walk(program):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and not names.has(module, node.attr):
                faults.append(f"{module}.{node.attr}")
    return faults


@pytest.fixture(scope="module")
def names(everything) -> Names:
    trees = {}
    for source in everything:
        module = source.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        trees[module] = source.tree
    return Names(trees)


# These name what a released version had, or a tree that a test makes.
OTHER_TREES = {"tests/deploy/test_near.py", "tests/tidy/test_programs.py"}
OLDER = {"gateway.children"}  # of the version before, in an update on a running host


def test_programs_in_texts_name_what_exists(everything, names) -> None:
    faults = [
        f"{source.name}:{line}: {fault}"
        for source in everything
        if source.name not in OTHER_TREES
        for line, program in programs(source.tree)
        for fault in unknown_names(program, names)
        if fault not in OLDER
    ]
    assert_none(faults, "a program in a text names what is not there: correct the name")


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("from router.nowhere import decide", "router.nowhere.decide"),
        ("from router.filters import there_is_none", "router.filters.there_is_none"),
        ("import router.nowhere", "router.nowhere"),
        ("from router import filters\nfilters.there_is_none = 1", "router.filters.there_is_none"),
    ],
)
def test_an_unknown_name_is_found(names, program: str, fault: str) -> None:
    assert unknown_names(ast.parse(program), names) == [fault]
    planted = ast.parse(f"TEXT = {program!r}")
    assert [unknown_names(item, names) for _, item in programs(planted)] == [[fault]]
