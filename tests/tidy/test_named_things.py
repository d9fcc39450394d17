"""What sentences name exists: files in documents, and in backquotes what the code calls its own."""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from findings import assert_none
from walking import walk

HISTORY = {Path("CHANGELOG.md"), Path("DECISIONS.md")}  # they tell of what was, as records do
LEFT_OUT = {".git", ".venv", "build", "node_modules", ".breakeven"}
# Of formats and services, which no code here reads by these names.
FOREIGN = {
    "AWS_...", "AZURE_...", "DiscardPadding", "IEND", "RetryInfo", "acTL", "d83d", "evictions",
    "jku", "kept_...", "max_dynamic_patch", "wanted_...", "web_search_preview", "x5c", "x5u",
}  # fmt: skip
QUOTED = re.compile(r"`([A-Za-z_][\w.]*(?:\(\))?)`")
COMMENT = re.compile(r"#.*`.*")
WORD = re.compile(r"[A-Za-z_]\w{2,}")
DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NAME_FIELDS = ("id", "attr", "name", "arg", "module", "asname")
NAMING = {
    kind: fields
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
    and (fields := [name for name in NAME_FIELDS if name in kind._fields])
}  # fmt: skip
FILE = re.compile(r"`([\w./-]+\.py)`")
DOTTED = re.compile(r"(?<![\w./])(?:gateway|ledger|router|backends|dashboard)(?:\.[A-Za-z_]\w*)+")
SETTINGS = {"dashboard.access_file"}  # by their path in the configuration
OTHER_TEXTS = {".yaml", ".yml", ".toml", ".json", ".html", ".js", ".mjs", ".c", ".sh", ".tpl"}


def sentences(text: str, tree: ast.Module) -> Iterator[str]:
    """Docstrings and comments."""
    for node in walk(tree, *DESCRIBED):
        yield ast.get_docstring(node) or ""
    yield from COMMENT.findall(text)


def code_words(tree: ast.Module) -> set[str]:
    """Names and the words of texts, but not of docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in walk(tree, *DESCRIBED)
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    texts = {
        node.value
        for node in walk(tree, ast.Constant)
        if isinstance(node.value, str) and id(node) not in docstrings
    }
    for kind, fields in NAMING.items():
        for node in walk(tree, kind):
            texts.update(str(getattr(node, field) or "") for field in fields)
    return set(WORD.findall(" ".join(texts)))


def unknown(text: str, tree: ast.Module, known: set[str]) -> list[str]:
    named = {name for sentence in sentences(text, tree) for name in QUOTED.findall(sentence)}
    return sorted(name for name in named - FOREIGN if set(WORD.findall(name)) - known)


def kept_files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        yield from [Path(folder, name) for name in names]


@pytest.fixture(scope="session")
def known(root: Path, everything) -> set[str]:
    words: set[str] = set()
    for path in kept_files(root):
        words.update(WORD.findall(path.as_posix()))
        if path.suffix in OTHER_TEXTS:
            words.update(WORD.findall(path.read_text(encoding="utf-8", errors="replace")))
    return words.union(*[code_words(source.tree) for source in everything])


def test_what_docstrings_and_comments_name_exists(product, known) -> None:
    found = [
        f"{source.name}: `{name}`"
        for source in product
        for name in unknown(source.text, source.tree, known)
    ]
    assert_none(found, "a docstring or comment names what is not there: correct the name")


def test_a_name_that_went_is_found() -> None:
    text = '"""Read by `gone_name` and `kept`."""\nkept = 1  # see `Lost.kept`\n'
    assert unknown(text, ast.parse(text), {"kept"}) == ["Lost.kept", "gone_name"]


def missing_files(text: str, folder: str, names: set[str]) -> list[str]:
    """Paths may be told from the document's folder or by their end."""
    there = names | {name[len(folder) :] for name in names if name.startswith(folder)}
    told = {name.replace("../", "").removeprefix("./") for name in FILE.findall(text)}
    return sorted(
        name for name in told if not any(f"/{path}".endswith(f"/{name}") for path in there)
    )


def test_the_files_that_documents_name_exist(root: Path) -> None:
    paths = sorted(path.relative_to(root) for path in kept_files(root))
    names = {path.as_posix() for path in paths}
    found = [
        f"{path}: {name}"
        for path in paths
        if path.suffix == ".md" and path not in HISTORY and path.parent != Path("docs/decisions")
        for name in missing_files((root / path).read_text("utf-8"), f"{path.parent}/", names)
    ]
    assert_none(found, "a document names a file that is not there: correct the path")


def test_a_file_that_went_is_found() -> None:
    text = "See `a/b.py`, `c.py`, `../a/b.py` and `a/gone.py`."
    assert missing_files(text, "docs/", {"a/b.py", "docs/c.py"}) == ["a/gone.py"]


def dead_places(text: str, tree: ast.Module, modules: Mapping[str, set[str]]) -> list[str]:
    """Modules, and names of a module, that sentences tell by their whole path and that are not."""
    said = [ast.get_docstring(node) or "" for node in walk(tree, *DESCRIBED)]
    said += re.findall(r"#.*", text)
    named = {name for sentence in said for name in DOTTED.findall(sentence)}
    return sorted(name for name in named - SETTINGS if not _is_there(name, modules))


def _is_there(name: str, modules: Mapping[str, set[str]]) -> bool:
    if name in modules or name.endswith((".py", ".md", ".yaml", ".db")):
        return True
    module, _, last = name.rpartition(".")
    while module:
        if module in modules:
            return last in modules[module]
        module, _, last = module.rpartition(".")
    return False


def test_the_places_that_sentences_name_by_their_path_exist(product) -> None:
    modules = {
        source.name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): code_words(
            source.tree
        )
        for source in product
    }
    for name in list(modules):
        modules.setdefault(name.partition(".")[0], set())
    found = [
        f"{source.name}: {name}"
        for source in product
        for name in dead_places(source.text, source.tree, modules)
    ]
    assert_none(found, "a sentence names a module, or a name in it, that is not there: correct it")


def test_a_place_that_moved_is_found() -> None:
    modules = {"router": set(), "router.kinds": {"Kind"}}
    text = '"""As `router.kinds.Kind`, not `router.Kind`."""\nx = 1  # router.gone\n'
    assert dead_places(text, ast.parse(text), modules) == ["router.Kind", "router.gone"]
