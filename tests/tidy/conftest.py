"""What the structure tests look at: every Python file of the product, parsed once."""

import ast
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gateway", "backends", "router", "ledger", "dashboard")


class Source(NamedTuple):
    path: Path
    name: str  # relative to the repository
    text: str
    tree: ast.Module


def read(folder: str) -> list[Source]:
    """Parse all files of a folder; nobody looks for garbage meanwhile, all nodes stay."""
    gc.disable()
    try:
        return list(_parse(folder))
    finally:
        gc.freeze()
        gc.enable()


def _parse(folder: str) -> Iterator[Source]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        if "node_modules" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        yield Source(path, name, text, ast.parse(text))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def product() -> list[Source]:
    """The five packages."""
    return [source for package in PACKAGES for source in read(package)]


@pytest.fixture(scope="session")
def everything(product: list[Source]) -> list[Source]:
    """The packages, migrations, deployment and tests."""
    return [*product, *read("migrations"), *read("deploy"), *read("tests")]
