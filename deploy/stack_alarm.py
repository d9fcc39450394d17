"""Stack traces of all threads on standard error, for a test that takes five minutes.

Pytest's `faulthandler_timeout` prints the same, but starts and ends a thread for every test: a
third of pytest's work for a short test. Here one alarm covers all tests that begin within a minute.
"""

import faulthandler
import time
from collections.abc import Iterator

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

LIMIT_S = 300.0
SHARED_S = 60.0  # an alarm may fire this much early


class StackAlarm:
    """A pytest plugin that sets the alarm at the first test, and again at most once a minute."""

    def __init__(self, limit_s: float = LIMIT_S, shared_s: float = SHARED_S) -> None:
        self._limit_s, self._shared_s = limit_s, shared_s
        self._set_s: float | None = None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        now_s = time.monotonic()
        if self._set_s is None or now_s - self._set_s >= self._shared_s:
            errors = item.config.stash.get(fault_handler_stderr_fd_key, None)
            if errors is not None:  # None if pytest's plugin is disabled
                faulthandler.dump_traceback_later(self._limit_s, file=errors)
            self._set_s = now_s
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        """Forget the alarm, because pytest's own plugin has just cancelled it."""
        self._set_s = None

    def pytest_sessionfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()


def register(config: pytest.Config) -> None:
    config.pluginmanager.register(StackAlarm())
