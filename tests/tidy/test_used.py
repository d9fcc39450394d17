"""What the product defines in public the product uses: what tests alone call goes.

By names, wherever they stand, so that a name that two things bear hides one of them; what a module
defines is also looked for through the imports. What is decorated is called by a framework, and
methods of a class with a foreign base by whoever wrote that.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from findings import assert_none
from walking import walk

WORD = re.compile(r"[A-Za-z_]\w*")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

REFERENCE = re.compile(r"[a-z_][\w.]*[.:]\w+")  # of a module, or of a name in one
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


def module_name(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def unreached(trees: Mapping[str, ast.Module]) -> list[tuple[str, str]]:
    """Return public names of modules that no other module imports and their own does not read.

    All of a module counts as used that is handed on as a whole, or named in a text; so do constants
    that something asks of a module which it was given.
    """
    imported: set[tuple[str, str]] = set()
    whole: set[str] = set()
    texts: set[str] = set()
    for module, tree in trees.items():
        aliases: dict[str, str] = {}
        for node in walk(tree, ast.ImportFrom, ast.Import):
            for alias in node.names:
                if isinstance(node, ast.ImportFrom):
                    imported.add((node.module or "", alias.name))
                    target = f"{node.module}.{alias.name}"
                else:
                    target = alias.name
                if target in trees:
                    aliases[alias.asname or alias.name] = target
        asked = {id(node.value) for node in walk(tree, ast.Attribute)}
        for node in walk(tree, ast.Attribute):
            imported.add((aliases.get(ast.unparse(node.value), ""), node.attr))
        for node in walk(tree, ast.Name):
            if node.id in aliases and id(node) not in asked:
                whole.add(aliases[node.id])
            elif isinstance(node.ctx, ast.Load):
                imported.add((module, node.id))
        for node in walk(tree, ast.Constant):
            if isinstance(node.value, str) and REFERENCE.fullmatch(node.value):
                texts.add(node.value)
    dynamic = whole | texts & trees.keys()
    return [
        (module, name)
        for module, tree in trees.items()
        if module not in dynamic
        for _, name in defined(ast.Module([each for each in tree.body if not _is_class(each)], []))
        if not name.startswith("_")
        and (module, name) not in imported
        and f"{module.rpartition('.')[2]}:{name}" not in texts
        and not (name.isupper() and ("", name) in imported)
    ]


def _is_class(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef)


def test_what_a_module_defines_is_reached(product, everything) -> None:
    trees = {
        module_name(each.name): each.tree
        for each in everything
        if not each.name.startswith("tests/")
    }
    own = {module_name(each.name) for each in product}
    assert_none(
        (
            f"{module}.{name}"
            for module, name in unreached(trees)
            if module in own and name not in TESTED_WHOLE and name != "main"
        ),
        "no module of the product imports it: delete it with its tests",
    )


def test_what_another_module_calls_alike_hides_nothing() -> None:
    texts = {
        "a": "def fit(): ...\ndef kept(): ...\nx = kept()\ndef late(): ...\n",
        "b": "import c\nfrom a import x\ny = c.fit(x)\nz = load('a:late')\n",
        "c": "def fit(x): return x\n",
    }
    trees = {module: ast.parse(text) for module, text in texts.items()}
    assert unreached(trees) == [("a", "fit"), ("b", "y"), ("b", "z")]


def test_what_nobody_calls_is_found() -> None:
    tree = ast.parse(
        '"""Says of `lost`."""\ndef lost(): ...\ndef kept(): ...\nclass A:\n'
        "    @property\n    def gone(self): ...\n    @app.get('/')\n    def called(self): ...\n"
        "x = kept(A)\n"
    )
    names = {name for _, name in defined(tree)}
    assert {name for name in names if not used(tree)[name]} == {"lost", "gone", "x"}
