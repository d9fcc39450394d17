"""What lanes import is compiled before they begin, by pytest's own rules."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion import rewrite
from hypothesis import configuration
from hypothesis.internal.constants_ast import constants_from_module

from deploy import compiling

SOURCE = "def test_it():\n    assert {value} == 1\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One test and one module, with bytecode beside them."""
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for folder in ("tests", "gateway"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(SOURCE.format(value=1))
    (tmp_path / "tests" / "test_broken.py").write_text("def\n")
    (tmp_path / "gateway" / "b.py").write_text("B = 1\n")
    return tmp_path


def kept_of(tree: Path) -> tuple[Path, Path]:
    test, module = tree / "tests" / "test_a.py", tree / "gateway" / "b.py"
    rewritten = rewrite.get_cache_dir(test) / f"test_a{rewrite.PYC_TAIL}"
    return rewritten, Path(importlib.util.cache_from_source(str(module)))


@pytest.fixture
def asked(pytestconfig: pytest.Config, tree: Path, monkeypatch) -> pytest.Config:
    monkeypatch.setattr(pytestconfig, "args", [str(tree / "tests")])
    return pytestconfig


def test_pytest_takes_what_was_compiled(asked: pytest.Config, tree: Path) -> None:
    rewritten, module = kept_of(tree)
    compiling.compile_ahead(asked, tree)
    code = rewrite._read_pyc(tree / "tests" / "test_a.py", rewritten)
    assert code is not None
    assert "@pytest_ar" in code.co_names  # its assertions are rewritten
    assert module.exists()
    assert not rewritten.with_name(f"test_broken{rewrite.PYC_TAIL}").exists()


def test_only_what_changed_is_compiled_again(asked: pytest.Config, tree: Path) -> None:
    rewritten, _ = kept_of(tree)
    compiling.compile_ahead(asked, tree)
    before = rewritten.stat().st_ino
    compiling.compile_ahead(asked, tree)
    assert rewritten.stat().st_ino == before
    source = tree / "tests" / "test_a.py"
    source.write_text(SOURCE.format(value=2))
    compiling.compile_ahead(asked, tree)
    assert compiling.is_current(source, rewritten)
    assert rewritten.stat().st_ino != before


def test_hypothesis_finds_the_constants_of_the_product(asked, tree: Path, monkeypatch) -> None:
    """Those of tests it leaves out."""
    monkeypatch.setattr(configuration, "__hypothesis_home_directory", tree / "home")
    (tree / "gateway" / "b.py").write_text("B = 81_919\n")
    compiling.compile_ahead(asked, tree)
    (kept,) = (tree / "home" / "constants").iterdir()
    assert "81919" in kept.read_text()
    kept.write_text("7_654_321")
    module = ModuleType("b")
    module.__file__ = str(tree / "gateway" / "b.py")
    assert 7_654_321 in constants_from_module(module).integers


@pytest.mark.parametrize("word", ["tests/test_a.py", "elsewhere"])
def test_a_run_of_less_compiles_nothing(asked, tree: Path, word: str, monkeypatch) -> None:
    (tree / "elsewhere").mkdir()
    monkeypatch.setattr(asked, "args", [str(tree / word)])
    compiling.compile_ahead(asked, tree)
    assert not any(kept.exists() for kept in kept_of(tree))


def test_where_nothing_may_be_written_nothing_is(asked, tree: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compiling.compile_ahead(asked, tree)
    assert not any(kept.exists() for kept in kept_of(tree))


def test_every_folder_with_code_is_compiled(pytestconfig: pytest.Config) -> None:
    root = pytestconfig.rootpath
    names = {path.relative_to(root).parts[0] for path in compiling.sources(root)}
    assert names == set(compiling.PACKAGES)
    holding = {path.name for path in root.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert holding - {"docs", os.curdir} <= names
