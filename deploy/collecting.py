"""Garbage collection and imports during test runs, tuned to save CPU time.

Collecting 12,000 tests takes less than 10 s of CPU time; this module saves 3 s of them. Collected
tests live until the end of the run. Garbage collection is therefore off while pytest collects, and
the collected objects are frozen: no test scans them. Objects that earlier test files left (millions
by the end) are scanned and frozen once, when a file that left many ends. During a test, collection
runs less often; it would otherwise take 5 % of a test's CPU time. The validators of Altair and
CycloneDX read a grammar of addresses at import, which takes 2 s. Here the grammar is read when the
first address is validated.
"""

import functools
import gc
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

GRAMMAR = "rfc3987_syntax"
YOUNG = 50_000  # new objects after which a test's garbage is collected
MUCH = 10_000  # new objects after a test file that make a collection worthwhile


def read_on_demand(name: str) -> ModuleType:
    """Return a stand-in that imports the module when its one function is called."""
    standing = ModuleType(name)

    def is_valid_syntax(term: str, text: str) -> bool:
        if sys.modules.get(name) is standing:
            del sys.modules[name]
        real = importlib.import_module(name)
        valid: bool = real.is_valid_syntax(term, text)
        return valid

    vars(standing)["is_valid_syntax"] = is_valid_syntax
    return standing


class CollectionPause:
    """A pytest plugin that freezes collected tests and collects garbage between test files."""

    def pytest_collection_finish(self) -> None:
        gc.freeze()
        gc.set_threshold(YOUNG, 20, 100)
        gc.enable()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        yield
        young, looks, _ = gc.get_count()
        has_left_much = looks > 0 or young > MUCH
        if nextitem is not None and nextitem.path != item.path and has_left_much:
            gc.collect()
            gc.freeze()


def register(config: pytest.Config) -> None:
    sys.modules.setdefault(GRAMMAR, read_on_demand(GRAMMAR))
    gc.disable()
    config.pluginmanager.register(CollectionPause())
    config.add_cleanup(functools.partial(gc.set_threshold, *gc.get_threshold()))
    config.add_cleanup(gc.enable)  # for a run that ends before the collection does
