"""Reports of passed tests, sent in one message where pytest-xdist sends six.

Each message costs both ends four system calls and a serializer written in Python: two thirds of the
overhead of a test that takes 1 ms. Reports of tests that did not pass are sent as usual. A finished
test is reported before the next one begins, so the run names the right test when a lane dies.
"""

from collections.abc import Callable
from typing import Any

import pytest

MANY = "lane_events"
UNSAID = ("logstart", "logfinish")  # the run prints nothing for these events

Event = tuple[str, dict[str, Any]]


class LaneReports:
    """A lane's end of the channel; replaces the `sendevent` of pytest-xdist 3.8."""

    def __init__(self, send: Callable[..., None], *, tells_phases: bool) -> None:
        self._send = send
        self._tells_phases = tells_phases  # also sends set-up and tear-down, for `--durations`
        self._kept: list[Event] = []

    def sendevent(self, name: str, **how: Any) -> None:
        if name in UNSAID:
            return
        if name == "testreport" and _has_just_passed(how["data"]):
            if how["data"]["when"] == "call" or self._tells_phases:
                self._kept.append((name, {"data": {**how["data"], "keywords": {}}}))
        elif self._kept:
            events, self._kept = [*self._kept, (name, how)], []
            self._send(MANY, events=events)
        else:
            self._send(name, **how)


def _has_just_passed(report: dict[str, Any]) -> bool:
    return report["outcome"] == "passed" and "wasxfail" not in report


def tell_less(config: pytest.Config) -> None:
    """Make this lane's process send only what the run needs of passed tests."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            tells_phases = config.getoption("durations") is not None
            reports = LaneReports(plugin.sendevent, tells_phases=tells_phases)
            plugin.sendevent = reports.sendevent


def understand(node: Any) -> None:
    """Make the run's process accept several events in one message from this lane."""
    process = node.process_from_remote

    def process_many(event: Any) -> None:
        if isinstance(event, tuple) and event[0] == MANY:
            for each_event in event[1]["events"]:
                process(tuple(each_event))
        else:
            process(event)

    node.process_from_remote = process_many
