"""Thousands of schedules of an adversary, client and upstream, against the books and the bill.

Each kind of schedule keeps every invariant, and so do the kinds mixed. The suite draws the same
schedules every time; `make adversary` draws others, and more of them.
"""

import os

import pytest
from adversary_judge import faults_of
from adversary_kinds import KINDS, mixed
from hypothesis import HealthCheck, Phase, given, settings

LEAST = 20  # of a kind
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


def test_the_kinds_mixed_keep_every_invariant(world) -> None:
    check(world, mixed(), SCHEDULES // 2, Phase.generate, Phase.shrink)
