"""The report of a lane on a passed test: one message, where pytest-xdist sends six.

Each message costs both ends a serializer written in Python and four system calls: of the work that
goes beside a test of a millisecond, they were two thirds. What did not pass is told as ever, and a
test that is through is told before the next one begins, so a lane that dies names the right one.
"""

from collections.abc import Callable
from typing import Any

import pytest

MANY = "lane_events"
UNSAID = ("logstart", "logfinish")  # the run prints nothing for them

Event = tuple[str, dict[str, Any]]


class LaneReports:
    """A lane's end of the channel, in place of the `sendevent` of pytest-xdist 3.8."""

    def __init__(self, send: Callable[..., None], *, tells_phases: bool) -> None:
        self._send = send
        self._tells_phases = tells_phases  # set-up and tear-down too, as `--durations` needs
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
    """In a lane: let it say of what passed what the run needs."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            tells_phases = config.getoption("durations") is not None
            reports = LaneReports(plugin.sendevent, tells_phases=tells_phases)
            plugin.sendevent = reports.sendevent


def understand(node: Any) -> None:
    """In the run: take several events at once from this lane."""
    process = node.process_from_remote

    def process_many(event: Any) -> None:
        if isinstance(event, tuple) and event[0] == MANY:
            for each_event in event[1]["events"]:
                process(tuple(each_event))
        else:
            process(event)

    node.process_from_remote = process_many
