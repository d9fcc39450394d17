"""Collecting twelve thousand tests takes less than ten seconds of work, of which this saves three.

What is collected stays until the end, so nobody looks for garbage among it: not while it is made,
and not during any test. Nor does a test look through what the files before it have left, millions
of objects by the end: that is looked through once, when a file ends that left much. During a test
it is looked for less often, a twentieth of a test's work else. And a grammar of addresses, which
Altair's and CycloneDX's validator of documents reads for two seconds at its import, is read by who
validates an address.
"""

import functools
import gc
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

GRAMMAR = "rfc3987_syntax"
YOUNG = 50_000  # objects more than before, at which a test's garbage is looked for
MUCH = 10_000  # objects that a file left


def read_on_demand(name: str) -> ModuleType:
    """Stands for the module until its one function is called."""
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
    """From the first test file to the last."""

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
    config.add_cleanup(gc.enable)  # of a run that ends before
