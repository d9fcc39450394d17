"""Prompts billed beyond their bounds: raised at once for who saw it, bounded, faded."""

import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.estimator_rules import AGING_S, DAY_S, PROMPT_HALF_LIFE_S, UNUSED_S
from router.target_output import MARGIN
from router.target_prompts import (
    CONTEXT_LIMIT_TOKENS,
    PICTURE_FACTOR_LIMIT,
    PROMPT_CELLS,
    SOUND_FACTOR_LIMIT,
    PromptOverrun,
    TargetPrompts,
)

NOTHING = PromptOverrun()
factors = st.floats(0.0, 1e12)
overruns = st.builds(PromptOverrun, factors, factors, st.integers(0, 10**12))


def memory(slots: int = 16) -> "memoryview[float]":
    return memoryview(array("d", bytes(8 * PROMPT_CELLS * (slots + 1))))


def is_within(overrun: PromptOverrun) -> bool:
    return (
        0.0 <= overrun.pictures <= PICTURE_FACTOR_LIMIT
        and 0.0 <= overrun.sounds <= SOUND_FACTOR_LIMIT
        and 0 <= overrun.context <= CONTEXT_LIMIT_TOKENS
    )


def test_another_process_holds_for_it_with_its_next_request() -> None:
    cells = memory()
    first, second = TargetPrompts(cells), TargetPrompts(cells)
    assert second.overrun("p/m") is None
    first.observe("p/m", PromptOverrun(3.0, 1.5, 150_000), 1.0)
    assert second.overrun("p/m") == PromptOverrun(MARGIN * 3.0, MARGIN * 1.5, MARGIN * 150_000)
    second.observe("p/m", PromptOverrun(pictures=4.0), 1.0)
    assert first.overrun("p/m") == PromptOverrun(MARGIN * 4.0, MARGIN * 1.5, MARGIN * 150_000)
    assert first.overrun("p/other") is None
    assert second.forget("p/m") == 1
    assert first.overrun("p/m") is None


@given(st.lists(overruns, min_size=1, max_size=9))
def test_the_most_of_each_counts_within_its_limit(seen) -> None:
    prompts = TargetPrompts(memory())
    for overrun in seen:
        prompts.observe("p/m", overrun, 1.0)
    held = prompts.overrun("p/m")
    assert is_within(held)
    limits = PICTURE_FACTOR_LIMIT, SOUND_FACTOR_LIMIT, CONTEXT_LIMIT_TOKENS
    most = [max(told) for told in zip(*seen, strict=True)]
    bounded = [min(MARGIN * told, limit) for told, limit in zip(most, limits, strict=True)]
    assert list(held) == bounded


def test_one_team_moves_its_own_hold_and_others_as_far_as_two_saw() -> None:
    """One false figure of one team raised the hold of everybody's pictures fifty times."""
    cells = memory()
    first, second = TargetPrompts(cells), TargetPrompts(cells)  # two workers
    first.observe("p/m", PromptOverrun(10**9, 10**9, 10**9), 0.0, team="a")
    assert second.overrun("p/m", "b") == NOTHING
    second.observe("p/m", PromptOverrun(1.5, 0.0, 140_000), 0.0, team="b")
    assert first.overrun("p/m", "c") == (3.0, 0.0, 280_000), "two saw that"
    assert first.overrun("p/m", "a") == (
        PICTURE_FACTOR_LIMIT, SOUND_FACTOR_LIMIT, CONTEXT_LIMIT_TOKENS,
    )  # fmt: skip


@pytest.mark.parametrize("swept", [True, False])
def test_it_halves_in_a_day_and_an_overrun_a_day_stays_covered(swept) -> None:
    prompts, seen = TargetPrompts(memory()), PromptOverrun(8.0, 1.2, 400_000)
    prompts.observe("p/m", seen, 0.0)
    for day in range(1, 30):
        for hour in range(24) if swept else ():
            prompts.age((day - 1) * DAY_S + hour * AGING_S)
        prompts.age(day * PROMPT_HALF_LIFE_S)
        held = prompts.overrun("p/m")
        if day == 1:
            assert all(
                now == pytest.approx(told, rel=1e-3) for now, told in zip(held, seen, strict=True)
            )
    assert prompts.overrun("p/m") == NOTHING
    assert [row.overrun for row in prompts.rows()] == [NOTHING]
    prompts.age(UNUSED_S)
    assert list(prompts.rows()) == []


def test_one_lie_is_gone_in_a_week_beside_steady_traffic() -> None:
    prompts = TargetPrompts(memory())
    prompts.observe("p/m", PromptOverrun(10**9, 10**9, 10**9), 0.0)
    assert prompts.overrun("p/m") == (
        PICTURE_FACTOR_LIMIT, SOUND_FACTOR_LIMIT, CONTEXT_LIMIT_TOKENS,
    )  # fmt: skip
    for hour in range(8 * 24):
        prompts.observe("p/m", PromptOverrun(1.5, 1.1, 140_000), hour * AGING_S)
    assert prompts.overrun("p/m") == (3.0, 2.2, 280_000)


@given(st.lists(st.binary(min_size=8, max_size=8), min_size=9, max_size=9), st.floats(0.0, 1e12))
def test_whatever_a_row_holds_the_limits_hold(cells, now_s) -> None:
    held = memory()
    prompts = TargetPrompts(held)
    prompts.observe("p/m", NOTHING, 0.0)
    (row,) = prompts.rows()
    start = (row.slot + 1) * PROMPT_CELLS
    for cell, raw in enumerate(cells, start + 2):
        held[cell] = struct.unpack("d", raw)[0]
    assert is_within(prompts.overrun("p/m"))
    prompts.age(now_s)
    for aged in prompts.rows():
        assert is_within(aged.overrun)
