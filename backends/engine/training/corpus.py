"""Training text of the shipped model: documentation and sources of the running Python.

A document is one JSON object a line, of three kinds: `topic` (chapters of the language reference
that `help()` shows), `source` (the standard library's modules and tests, without tables) and `chat`
(a question about a function, class, module or chapter, answered by its documentation). The text has
Python's licence (PSF-2.0), except the lines of small talk below, which are ours. One module in
`HELD_OUT_OF` is held out for evaluation, with all documents about it.

Run: `python -m backends.engine.training.corpus corpus.jsonl.xz` (a few seconds). `--packages` adds
sources of installed packages with a permissive licence, for a larger model (`packages.py`), and
lists them beside the corpus.
"""

import argparse
import ast
import hashlib
import importlib
import inspect
import json
import lzma
import os
import random
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from pydoc_data.topics import topics
from types import ModuleType
from typing import Any

from backends.engine.training.packages import packages, texts

HELD_OUT_OF = 40
SMALL_TALK_TIMES = 60
_LEFT_OUT = (
    "site-packages", "dist-packages", "encodings", "ensurepip", "pydoc_data", "config-3",
    "lib-dynload", "__pycache__", "turtledemo",
)  # fmt: skip
_TESTS = ("test", "tests", "idle_test")
_TABLES = re.compile(r"_sysconfigdata|_pydecimal|symbol|stringprep")
_ANSWER = 1400  # maximum characters of an answer, cut at a paragraph
_LEAST = 24
_SHARE = 256 // HELD_OUT_OF
# Written in C: their documentation is in the objects, not in any source file.
_IN_C = (
    "builtins", "math", "cmath", "itertools", "time", "sys", "zlib", "array", "select", "gc",
    "functools", "operator", "collections", "struct", "binascii", "unicodedata", "errno", "signal",
    "posix", "io", "re", "datetime", "decimal", "json", "hashlib", "socket", "random", "string",
)  # fmt: skip
_GREETINGS = ("Hello", "Hello!", "Hi", "Hi!", "Hello there", "Good morning", "Hey", "hello", "hi")
_ABOUT = (
    "Hello! I am a very small language model, trained on the documentation and the sources of"
    " Python. Ask me what a function of the standard library does."
)
_ABLE = (
    "I can say what functions, classes and modules of Python are for. I am small, so check what I"
    " say against the documentation."
)
_PYTHON = (
    "Python is an interpreted, object-oriented, high-level programming language with dynamic"
    " typing. Its standard library has modules for files, text, networks and more."
)
_PRODUCT = (
    "Breakeven is a gateway that sends each request to your own engine or to an external provider,"
    " and a ledger that says what every request cost."
)
_SMALL_TALK: tuple[tuple[str, str], ...] = (
    *((greeting, _ABOUT) for greeting in _GREETINGS),
    ("Are you there?", "Yes, I am here. Ask me about Python."),
    ("Who are you?", _ABOUT),
    ("What are you?", _ABOUT),
    ("What can you do?", _ABLE),
    ("How are you?", "I am well, thank you. What do you want to know about Python?"),
    ("Thank you", "You are welcome."),
    ("Thanks!", "You are welcome."),
    ("Goodbye", "Goodbye!"),
    ("Say hello", "Hello!"),
    ("What is Python?", _PYTHON),
    ("What is Breakeven?", _PRODUCT),
)


@dataclass(frozen=True, slots=True)
class Document:
    """Document of the corpus. A chat has a `question`, and its answer as `text`."""

    kind: str
    name: str
    text: str
    question: str = ""
    held_out: bool = False


def documents(library: Path, seed: int) -> Iterator[Document]:
    """Yield all documents about Python, in a fixed order.

    `library` is the folder of the standard library. `seed` selects the forms of questions.
    """
    rng = random.Random(seed)  # noqa: S311  (a choice of words, no secret)
    for name, text in sorted(topics.items()):
        yield Document("topic", name, text, held_out=_is_held_out(name))
        yield from _topic_chats(name, text)
    for path in sorted(library.rglob("*.py")):
        inside = path.relative_to(library)
        if any(part.startswith(_LEFT_OUT) for part in inside.parts) or _TABLES.search(path.name):
            continue
        yield from _source(path, inside, rng)
    for name in _IN_C:
        yield from _chats(name, _documented_in_c(importlib.import_module(name)), rng)
    for question, answer in _SMALL_TALK * SMALL_TALK_TIMES:
        yield Document("chat", "small talk", answer, question)


def package_documents(folders: list[Path], seed: int) -> Iterator[Document]:
    """Yield the sources of installed packages, and one chat about each documented object.

    `folders` are site-packages.
    """
    rng = random.Random(seed)  # noqa: S311  (a choice of words, no secret)
    for package in packages(folders):
        for path, text in texts(package):
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError):
                continue
            name = f"{package.name} {path}"
            yield Document("source", name, f"# {path}\n{text}", held_out=_is_held_out(name))
            module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            chats = _chats(module, _documented(module, tree.body), rng, forms=1)
            yield from (replace(chat, held_out=_is_held_out(name)) for chat in chats)


def _source(path: Path, inside: Path, rng: random.Random) -> Iterator[Document]:
    text = path.read_text(encoding="utf-8", errors="replace")
    if not text.isascii() or len(text) < 200:
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:  # test files that are not valid Python
        return
    module = ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
    yield Document("source", module, f"# {inside}\n{text}", held_out=_is_held_out(module))
    if any(part in _TESTS for part in inside.parts):
        return
    about = ast.get_docstring(tree)
    if about and len(about) > _LEAST:
        for question in (f"What is the module {module} for?", f"Explain the module `{module}`."):
            yield Document("chat", module, _cut(about), question, _is_held_out(module))
    yield from _chats(module, _documented(module, tree.body), rng)


@dataclass(frozen=True, slots=True)
class _DocumentedObject:
    name: str
    call: str
    text: str


def _documented(scope: str, body: list[ast.stmt]) -> Iterator[_DocumentedObject]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_"):
            continue
        name = f"{scope}.{node.name}"
        text = ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            if text:
                yield _DocumentedObject(name, f"class {name}", text)
            yield from _documented(name, node.body)
        elif text:
            yield _DocumentedObject(name, f"{name}({ast.unparse(node.args)})", text)


def _documented_in_c(module: ModuleType) -> Iterator[_DocumentedObject]:
    scope = {"builtins": "", "posix": "os."}.get(module.__name__, f"{module.__name__}.")
    for name, item in sorted(vars(module).items()):
        text = inspect.getdoc(item) if callable(item) else None
        if name.startswith("_") or text is None or getattr(item, "__code__", None) is not None:
            continue
        yield _DocumentedObject(scope + name, f"{scope}{name}{_signature(item)}", text)
        if isinstance(item, type):
            for method, member in sorted(vars(item).items()):
                said = getattr(member, "__doc__", None)
                if isinstance(said, str) and not method.startswith("_") and callable(member):
                    whole = f"{scope}{name}.{method}"
                    yield _DocumentedObject(
                        whole, whole + _signature(member), inspect.cleandoc(said)
                    )


def _signature(found: Any) -> str:
    try:
        return str(inspect.signature(found))
    # Written in C without a signature, or with a default that Python 3.14 does not find.
    except (AttributeError, TypeError, ValueError):
        return "(...)"


def _chats(
    module: str, found: Iterable[_DocumentedObject], rng: random.Random, forms: int = 4
) -> Iterator[Document]:
    """Yield chats about each object, in `forms` of the five forms of a question."""
    for finding in found:
        first = finding.text.split("\n\n")[0].strip()
        if len(first) < _LEAST or not finding.text.isascii():
            continue
        questions = (
            (f"What does `{finding.name}` do?", first),
            (f"What does {finding.name} do?", _cut(finding.text)),
            (f"Explain {finding.name}.", _cut(finding.text)),
            (f"How do I call {finding.name}?", f"`{finding.call}`\n\n{first}"),
            (f"Which part of Python is this: {first}", f"It is `{finding.name}`."),
        )
        for question, answer in rng.sample(questions, forms):
            yield Document("chat", module, answer, question, _is_held_out(module))


def _topic_chats(name: str, text: str) -> Iterator[Document]:
    """Yield chats about a chapter. Its text begins with an underlined title, as in `help()`."""
    title, _, rest = text.strip().partition("\n")
    body = re.sub(r"^[*=-]+\n+", "", rest).strip()
    if len(body) < _LEAST:
        return
    subject = title.strip().rstrip(".")
    for question in (f"Explain {subject} in Python.", f"Tell me about {subject}.", f"help({name})"):
        yield Document("chat", name, _cut(body), question, _is_held_out(name))


def _cut(text: str) -> str:
    kept = ""
    for paragraph in text.strip().split("\n\n"):
        if kept and len(kept) + len(paragraph) > _ANSWER:
            break
        kept += ("\n\n" if kept else "") + paragraph
    return kept[:_ANSWER].strip()


def _is_held_out(name: str) -> bool:
    """Return whether a name is held out for evaluation, whatever the seed."""
    return hashlib.sha256(name.encode()).digest()[0] < _SHARE


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--packages", type=Path, nargs="*", default=[], help="site-packages to take sources from"
    )
    parser.add_argument("--preset", type=int, default=6, help="of xz: 0 to 9")
    given = parser.parse_args(arguments)
    library = Path(os.__file__).parent
    found = [asdict(document) for document in documents(library, given.seed)]
    found += [asdict(document) for document in package_documents(given.packages, given.seed)]
    if given.packages:
        listed = (
            f"{item.name} {item.version}: {item.licence}" for item in packages(given.packages)
        )
        notice = given.corpus.with_suffix(".licences.txt")
        notice.write_text("\n".join(listed) + "\n", encoding="utf-8")
    text = "".join(json.dumps(finding) + "\n" for finding in found)
    with lzma.open(given.corpus, "wt", encoding="utf-8", preset=given.preset) as file:
        file.write(text)
    count = len(found)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    version = sys.version.split()[0]
    sys.stdout.write(f"Python {version}: {count} documents, {len(text):,} bytes, {digest}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
