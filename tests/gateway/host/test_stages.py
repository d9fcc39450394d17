"""Stage timing: what a newcomer reads at the end of `make run`."""

import pytest

from gateway.host.stages import VARIABLE, StartStages


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_stages_are_announced_timed_and_summed() -> None:
    clock, lines = Clock(), []
    stages = StartStages(clock=clock, say=lines.append)
    with stages.stage("environment"):
        clock.now_s += 1.5
    with stages.stage("packages"):
        clock.now_s += 20.25
    assert lines[0] == "-> environment ..."
    assert lines[1] == "   environment: 1.5 s"
    assert stages.table() == [
        "     1.5 s  environment",
        "    20.2 s  packages",
        "    21.8 s  total",
    ]


def test_what_goes_on_beside_each_other_is_announced_and_counted_once() -> None:
    clock, lines = Clock(), []
    stages = StartStages(clock=clock, say=lines.append)
    with stages.stage("parts"), stages.part_of_stage("first"), stages.part_of_stage("second"):
        clock.now_s += 2
    assert lines[3] == "   second: 2.0 s"
    assert stages.done == [("parts", 2.0)]


def test_a_failed_stage_is_not_counted() -> None:
    stages = StartStages(clock=Clock(), say=lambda _: None)
    with pytest.raises(ValueError, match="no"), stages.stage("broken"):
        raise ValueError("no")
    assert stages.done == []


def test_the_next_process_goes_on_with_the_same_table() -> None:
    first = StartStages(clock=Clock(), say=lambda _: None)
    first.done = [("environment", 1.5), ("packages", 20.25)]
    second = StartStages(clock=Clock(), say=lambda _: None)
    second.done = [("gateway", 2.0)]
    second.resume(first.exported())
    assert second.done == [("environment", 1.5), ("packages", 20.25), ("gateway", 2.0)]


@pytest.mark.parametrize("damaged", ["", "{", "[1]", '[["a"]]', '[["a", "b"]]', "null"])
def test_a_damaged_table_is_ignored(damaged: str) -> None:
    stages = StartStages(clock=Clock(), say=lambda _: None)
    stages.resume({VARIABLE: damaged})
    assert stages.done == []
