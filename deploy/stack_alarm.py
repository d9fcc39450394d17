"""The stack of each thread of a test that takes five minutes, on the standard error.

As pytest's `faulthandler_timeout` tells, which starts and ends a thread for every test: a third of
what pytest does for a short one. Here one alarm serves the tests of a minute.
"""

import faulthandler
import time
from collections.abc import Iterator

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

LIMIT_S = 300.0
SHARED_S = 60.0  # an alarm may come so much earlier


class StackAlarm:
    """Set by the first test, and again by the first that begins a minute later."""

    def __init__(self, limit_s: float = LIMIT_S, shared_s: float = SHARED_S) -> None:
        self._limit_s, self._shared_s = limit_s, shared_s
        self._set_s: float | None = None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        now_s = time.monotonic()
        if self._set_s is None or now_s - self._set_s >= self._shared_s:
            errors = item.config.stash.get(fault_handler_stderr_fd_key, None)
            if errors is not None:  # else this run does without pytest's plugin
                faulthandler.dump_traceback_later(self._limit_s, file=errors)
            self._set_s = now_s
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        """Pytest's own plugin has just ended the alarm."""
        self._set_s = None

    def pytest_sessionfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()


def register(config: pytest.Config) -> None:
    config.pluginmanager.register(StackAlarm())
