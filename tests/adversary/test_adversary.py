"""Thousands of schedules of an adversary, client and upstream, against the books and the bill.

Each kind of schedule keeps every invariant, and so do the kinds mixed. The suite draws the same
schedules every time; the long tier as many again, mixed; `make adversary` others, and far more.
"""

import os

import pytest
from adversary_judge import faults_of
from adversary_kinds import KINDS, mixed
from hypothesis import HealthCheck, Phase, given, settings

LEAST = 20  # of a kind
MIXED = 500
SCHEDULES = int(os.environ.get("ADVERSARY_SCHEDULES", "5000"))
OF_A_KIND = max(LEAST, SCHEDULES // 2 // len(KINDS))


def check(world, schedules, count: int, *phases: Phase) -> None:
    """Play `count` schedules; the first that breaks an invariant ends it."""

    @settings(
        deadline=None, max_examples=count, phases=phases, suppress_health_check=list(HealthCheck)
    )
    @given(schedules)
    def play(schedule) -> None:
        faults = faults_of(schedule, world.play(schedule))
        assert not faults, "; ".join(faults)

    play()


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_keeps_every_invariant(world, kind: str) -> None:
    check(world, KINDS[kind], OF_A_KIND, Phase.generate, Phase.shrink)


@pytest.mark.parametrize("count", [MIXED, pytest.param(SCHEDULES // 2, marks=pytest.mark.long)])
def test_the_kinds_mixed_keep_every_invariant(world, count: int) -> None:
    check(world, mixed(), count, Phase.generate, Phase.shrink)
