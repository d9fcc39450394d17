"""Bytecode of the product and its tests, written once before the test lanes begin.

In a new tree, each lane would compile everything at the same time as the other lanes, which takes
30 s of CPU time per lane. Here one process per core compiles a share before any lane runs. The same
processes store the constants of the product that Hypothesis draws values from, which each lane
would otherwise parse from the sources.
"""

import compileall
import hashlib
import importlib.util
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion import rewrite
from hypothesis.configuration import storage_directory
from hypothesis.internal.constants_ast import constants_from_module, is_local_module_file

ROOT = Path(__file__).resolve().parent.parent
TESTS = "tests"
PACKAGES = ("gateway", "backends", "router", "ledger", "dashboard", "deploy", "migrations", TESTS)
LEFT_OUT = "node_modules"


def sources(root: Path) -> list[Path]:
    """Return every Python file of the product and its tests."""
    return sorted(
        path
        for package in PACKAGES
        for path in (root / package).rglob("*.py")
        if LEFT_OUT not in path.parts
    )


def compile_ahead(config: pytest.Config, root: Path = ROOT) -> None:
    """Write missing or outdated bytecode, if the run covers a folder of the tests.

    Files that cannot be compiled are skipped: the import of such a file reports the fault.
    """
    asked = [Path(config.invocation_params.dir, word) for word in config.args]
    if sys.dont_write_bytecode or not any(
        path.is_dir() and path.is_relative_to(root / TESTS) for path in asked
    ):
        return
    paths, cores = sources(root), len(os.sched_getaffinity(0))
    forks = multiprocessing.get_context("fork")
    shares = [
        forks.Process(target=compile_all, args=(config, paths[place::cores]))
        for place in range(cores)
    ]
    for share in shares:
        share.start()
    for share in shares:
        share.join()


def compile_all(config: pytest.Config, paths: Sequence[Path]) -> None:
    """Compile each file as its import expects: test files with rewritten assertions."""
    for path in paths:
        if path.name.startswith("test_") or path.name == "conftest.py":
            _rewrite(config, path)
        else:
            compileall.compile_file(path, quiet=2)
            if is_local_module_file(str(path)):
                keep_constants(path)


def keep_constants(path: Path) -> None:
    """Store the constants of a file for Hypothesis before a lane needs them."""
    digest = hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()[:16]
    if not (storage_directory("constants").path / digest).exists():
        module = ModuleType(path.stem)
        module.__file__ = str(path)
        constants_from_module(module)


def _rewrite(config: pytest.Config, path: Path) -> None:
    folder = rewrite.get_cache_dir(path)
    kept = folder / f"{path.stem}{rewrite.PYC_TAIL}"
    if is_current(path, kept) or not rewrite.try_makedirs(folder):
        return
    try:
        digest, code = rewrite._rewrite_test(path, config)  # noqa: SLF001  (pytest is pinned)
    except (SyntaxError, ValueError):
        return
    state = config.stash[rewrite.assertstate_key]
    rewrite._write_pyc(state, code, digest, kept)  # noqa: SLF001  (likewise)


def is_current(path: Path, kept: Path) -> bool:
    """Return whether pytest would accept this bytecode for the current source file."""
    try:
        with kept.open("rb") as file:
            head = file.read(16)
    except OSError:
        return False
    flags = b"\x03\x00\x00\x00"
    digest = importlib.util.source_hash(path.read_bytes())
    return head == importlib.util.MAGIC_NUMBER + flags + digest
