"""What the product defines in public the product uses: what tests alone call goes.

By names, wherever they stand: a name that two things bear hides one of them. What is decorated is
called by a framework, and methods of a class with a foreign base by whoever wrote that.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from findings import assert_none
from walking import walk

WORD = re.compile(r"[A-Za-z_]\w*")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

PLAIN = {"property", "staticmethod", "classmethod", "cached_property"}


def defined(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Public functions, classes, constants and methods, with their lines."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from _names(node.lineno, target)
        elif isinstance(node, FUNCTIONS):
            if _is_plain(node):
                yield node.lineno, node.name
        elif isinstance(node, ast.ClassDef):
            yield node.lineno, node.name
            for inner in node.body if not node.bases else ():
                if isinstance(inner, FUNCTIONS) and _is_plain(inner):
                    yield inner.lineno, inner.name


def _is_plain(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return {ast.unparse(each) for each in node.decorator_list} <= PLAIN


def _names(line: int, target: ast.expr) -> Iterator[tuple[int, str]]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield line, node.id


def used(tree: ast.Module) -> Counter[str]:
    """Words of expressions and of texts that are no docstrings, and of imports from elsewhere."""
    found: Counter[str] = Counter()
    for node in walk(tree, ast.Name):
        if isinstance(node.ctx, ast.Load):
            found[node.id] += 1
    for node in walk(tree, ast.Attribute):
        found[node.attr] += 1
    for node in walk(tree, ast.keyword):
        found[node.arg or ""] += 1
    for node in walk(tree, ast.ImportFrom):  # by another name
        found.update(alias.name for alias in node.names if alias.asname)
    documents = {id(node.value) for node in walk(tree, ast.Expr)}
    for node in walk(tree, ast.Constant):
        if isinstance(node.value, str) and id(node) not in documents:
            found.update(WORD.findall(node.value))
    return found


# Of these the product has the parts in use; tests ask for the whole.
TESTED_WHOLE = {
    "import_drafts": "`record_drafts` and its like in a transaction of its own",
    "OPENED": "names of the values that `opened_values` returns, by which tests read them",
}


def test_what_is_defined_is_used(product, everything) -> None:
    words: Counter[str] = Counter()
    for each in everything:
        if not each.name.startswith("tests/"):
            words.update(used(each.tree))
    found = {
        name: f"{each.name}:{line}: {name}"
        for each in product
        for line, name in defined(each.tree)
        if not name.startswith("_") and not words[name]
    }
    assert found.keys() >= TESTED_WHOLE.keys()
    assert_none(
        (text for name, text in found.items() if name not in TESTED_WHOLE),
        "nothing of the product uses it: delete it with its tests",
    )


def test_what_nobody_calls_is_found() -> None:
    tree = ast.parse(
        '"""Says of `lost`."""\ndef lost(): ...\ndef kept(): ...\nclass A:\n'
        "    @property\n    def gone(self): ...\n    @app.get('/')\n    def called(self): ...\n"
        "x = kept(A)\n"
    )
    names = {name for _, name in defined(tree)}
    assert {name for name in names if not used(tree)[name]} == {"lost", "gone", "x"}
