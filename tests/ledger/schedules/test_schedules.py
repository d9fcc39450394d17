"""Whatever happens in whatever order, wherever who dies: no money twice, none lost, none refused.

Each schedule is twenty steps of two hosts with two workers on nested budgets, then an end at which
everything has come back. A failure names its seed: `play(Code(), seed)` repeats it.
"""

import gc
import random
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from schedule_code import Code
from schedule_steps import OPS, play
from schedule_world import World

CODE = Code()
HAPPENS = (
    "worker died with an open attempt",
    "worker died between hold and journal",
    "writer died before the grant's commit",
    "writer died after the grant's commit",
    "writer died between commit and desk",
    "writer died before a journal went",
    "writer died after a journal went",
    "the database was away",
    "messages lost",
    "lost at the bound",
    "settled late",
    "settled above the bound",
    "settled in a window that ended",
    "held",
    "refused",
    "hung up",
    "could not be told",
)


def outcomes(world):
    found = Counter(world.happened)
    for attempt in world.attempts:
        if attempt.holds:
            found["held"] += 1
        elif isinstance(attempt.answer, CODE.client.BudgetRefusal):
            found["refused"] += 1
        elif isinstance(attempt.answer, CODE.client.BrokerUnavailable):
            found["could not be told"] += 1
        else:
            found["hung up"] += 1
    return found


def played(seeds):
    total = Counter()
    for seed in seeds:
        total += outcomes(play(CODE, seed))
    print(f"{len(seeds)} schedules:", dict(total))
    return total


def test_no_schedule_breaks_a_budget():
    """The planted faults are found by 400 of them, see `test_mutants`; the long run takes more."""
    total = played(range(1_000))
    assert {name: total[name] for name in HAPPENS if total[name] < 4} == {}


@pytest.mark.parametrize("seed", [23_831, 70_960, 85_573, 95_660])
def test_a_desk_that_ends_leaves_no_loan_of_a_worker_that_hung_up_under_way(seed):
    """Only those of workers that were still there were ended with it."""
    play(CODE, seed)
    gc.collect()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(11))
def test_no_schedule_of_very_many_does(part):
    played(range(10_000 * part, 10_000 * (part + 1)))


class Schedules(RuleBasedStateMachine):
    """The same steps where Hypothesis chooses and shrinks."""

    def __init__(self):
        super().__init__()
        self.world = World(CODE, random.Random(0))

    @rule(name=st.sampled_from(sorted(OPS)), chance=st.integers(0, 999))
    def step(self, name, chance):
        self.world.rng.seed(chance)
        self.world.step(name, OPS[name][1])

    def teardown(self):
        self.world.finish()


def test_nor_one_that_hypothesis_finds():
    run_state_machine_as_test(Schedules, settings=settings(max_examples=50))
