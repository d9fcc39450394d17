"""What targets make beside their limits: raised at once, bounded, faded, of the target alone."""

import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.estimator_rules import (
    AGING_S,
    OVERRUN_HALF_LIFE_S,
    UNSEEN_HALF_LIFE_S,
    UNSEEN_STEP,
    UNUSED_S,
)
from router.target_output import (
    LEAST_RATE_PER_S,
    MARGIN,
    OUTPUT_CELLS,
    OVERRUN_LIMIT,
    RATE_LIMIT_PER_S,
    SLOTS,
    USUAL_RATE_PER_S,
    EndedAnswer,
    TargetOutput,
)

counts = st.integers(0, 10**9)
seconds = st.floats(0, 10**6)
DAYS = OVERRUN_HALF_LIFE_S


def observed(output: int, reasoning: int = 0, *, said=0, first_s=1.0, duration_s=10.0, known=None):
    beside = known or TargetOutput()
    beside.observe("p/m", EndedAnswer(output, reasoning, said, first_s, duration_s), 0.0)
    return beside


@pytest.mark.parametrize(
    ("beside", "hides", "rate"),
    [
        (observed(100, said=500), False, 10.0),
        (observed(1100, 1000, said=500, first_s=2.0), True, (1100 - 250) / 2.0),
        (observed(4400, 4400, said=500, first_s=2.0), True, None),  # faster than a step
        (observed(1100, 1000, said=5500), False, 110.0),  # its reasoning was shown
        (observed(1100, 1000, first_s=None, duration_s=11.0), False, 100.0),  # in one piece
        (observed(10**9, 10**9, first_s=0.0), True, None),
    ],
)
def test_the_rate_is_of_what_was_hidden_or_of_all(beside, hides, rate) -> None:
    assert beside.hides("p/m") is hides
    assert beside.tokens_per_s("p/m") == pytest.approx(rate)
    assert (beside.hides("p/x"), beside.tokens_per_s("p/x")) == (False, None)


def test_a_fast_answer_is_remembered_and_fades() -> None:
    beside = observed(1000)
    observed(10, known=beside)
    assert beside.tokens_per_s("p/m") == pytest.approx(99.0)
    for _ in range(1000):
        observed(10, known=beside)
    assert beside.tokens_per_s("p/m") == pytest.approx(1.0)


@given(counts, counts, counts, st.none() | seconds, seconds)
def test_whatever_is_reported_the_rate_is_bounded(output, reasoning, said, first_s, duration_s):
    beside = observed(output, reasoning, said=said, first_s=first_s, duration_s=duration_s)
    assert 0.0 <= (beside.tokens_per_s("p/m") or 0.0) <= RATE_LIMIT_PER_S


answers = st.builds(EndedAnswer, counts, counts, counts, st.none() | seconds, seconds)


@given(answers)
def test_the_first_answer_of_all_moves_it_by_a_step_of_the_usual_rate(lie) -> None:
    """It made 20,000 tokens a second of nothing, for hundreds of answers."""
    beside = TargetOutput()
    for now_s in (0.0, 3 * UNSEEN_HALF_LIFE_S):
        beside.observe("p/m", lie, now_s, team="liar")
        rate = beside.tokens_per_s("p/m")
        assert rate is None or rate <= UNSEEN_STEP * USUAL_RATE_PER_S
        beside.age(now_s + 2 * UNSEEN_HALF_LIFE_S)
        assert beside.tokens_per_s("p/m") is None


def test_a_rate_is_known_once_a_step_reaches_what_came() -> None:
    """A fast model's thoughts were booked at a step's rate from its first answer on."""
    beside, known = TargetOutput(), []
    for _ in range(5):
        observed(1500, known=beside)
        known.append(beside.tokens_per_s("p/m"))
    assert known == [150.0] * 5
    observed(300_000, known=beside)  # what is known stays so
    assert beside.tokens_per_s("p/m") == pytest.approx(300.0)
    beside, known = TargetOutput(), []
    for _ in range(5):
        observed(150_000, known=beside)
        known.append(beside.tokens_per_s("p/m"))
    assert known == [None, None, None, 15_000.0, 15_000.0]
    beside = observed(10**9, first_s=0.0)
    observed(500, known=beside)  # an honest answer that fits makes it known again
    assert beside.tokens_per_s("p/m") == pytest.approx(1980.0)


@given(st.lists(answers, min_size=1, max_size=20), answers)
def test_one_answer_of_another_team_moves_what_is_booked_unseen_by_a_bounded_step(seen, lie):
    """Red before: one answer in milliseconds made 10,000 tokens a second of any rate."""
    beside = TargetOutput()
    for answer in seen:
        beside.observe("p/m", answer, 0.0, team="honest")
    before, hides = beside.tokens_per_s("p/m"), beside.hides("p/m", "honest")
    beside.observe("p/m", lie, 0.0, team="liar")
    after = beside.tokens_per_s("p/m")
    if before is not None:
        assert before / UNSEEN_STEP <= after <= UNSEEN_STEP * max(before, LEAST_RATE_PER_S)
    assert beside.hides("p/m", "other") <= hides


def test_what_one_team_alone_saw_hidden_is_believed_of_it_alone() -> None:
    cells = memory()
    beside, other = TargetOutput(cells), TargetOutput(cells)
    hidden = EndedAnswer(100, 95, 2, 0.002, 0.003)
    for _ in range(100):
        beside.observe("p/m", hidden, 0.0, team="liar")
    assert (other.hides("p/m", "liar"), other.hides("p/m", "honest")) == (True, False)
    assert next(other.rows()).hides
    beside.observe("p/m", EndedAnswer(100, 0, 400, 1.0, 3.0), 0.0, team="honest")
    assert not other.hides("p/m", "honest")
    beside.observe("p/m", hidden, 0.0, team="honest")  # a second one saw it
    assert (other.hides("p/m", "honest"), other.hides("p/m", "third")) == (True, True)
    beside.age(UNSEEN_HALF_LIFE_S)
    assert other.hides("p/m", "third")
    beside.age(2 * UNSEEN_HALF_LIFE_S)
    assert not any(other.hides("p/m", team) for team in ("honest", "third"))


def test_a_rate_that_was_seen_is_reached_in_a_few_answers() -> None:
    beside = observed(10)  # one token a second
    for _ in range(4):
        observed(1000, known=beside)
    assert beside.tokens_per_s("p/m") == pytest.approx(100.0)


def test_nothing_is_added_before_anything_was_seen() -> None:
    beside = TargetOutput()
    assert beside.allowance("p/m") == 0
    beside.observe_overrun("p/m", 500, 0.0)
    assert (beside.allowance("p/m"), beside.allowance("p/x")) == (MARGIN * 500, 0)
    assert (beside.hides("p/m"), beside.tokens_per_s("p/m")) == (False, None)


def test_what_requests_that_ask_to_think_were_billed_is_held_for_by_such_alone() -> None:
    """One honest thinker raised everybody's holds by a thousand times."""
    beside = TargetOutput()
    beside.observe_overrun("p/m", 30_000, 0.0, thinks=True)
    assert (beside.allowance("p/m"), beside.allowance("p/m", thinks=True)) == (0, MARGIN * 30_000)
    assert beside.has_overruns()
    beside.observe_overrun("p/m", 500, 0.0)
    assert beside.allowance("p/m") == MARGIN * 500
    assert beside.allowance("p/m", thinks=True) == MARGIN * 30_000
    (row,) = beside.rows()
    assert row.allowance_tokens == MARGIN * 30_000
    beside.age(DAYS)
    assert beside.allowance("p/m", thinks=True) == MARGIN * 15_000
    plain = TargetOutput()
    plain.observe_overrun("p/m", 70, 0.0)
    assert plain.allowance("p/m", thinks=True) == MARGIN * 70


def test_one_team_moves_its_own_hold_and_others_as_far_as_two_saw() -> None:
    """One answer to one team raised the hold of everybody's next request 3,000 times."""
    cells = memory()
    beside, other = TargetOutput(cells), TargetOutput(cells)  # two workers
    beside.observe_overrun("p/m", 100_000, 0.0, team="a")
    assert other.allowance("p/m", "a") == OVERRUN_LIMIT
    assert (other.allowance("p/m", "b"), other.has_overruns()) == (0, True)
    other.observe_overrun("p/m", 300, 0.0, team="b")
    assert beside.allowance("p/m", "a") == OVERRUN_LIMIT, "its own most stays"
    assert {beside.allowance("p/m", team) for team in "bc"} == {MARGIN * 300}, "two saw that"
    assert {beside.allowance("p/m", team, thinks=True) for team in "bc"} == {MARGIN * 300}
    beside.observe_overrun("p/m", 900, 0.0, team="b", thinks=True)
    assert other.allowance("p/m", "b", thinks=True) == MARGIN * 900
    assert other.allowance("p/m", "c", thinks=True) == MARGIN * 300
    assert [row.allowance_tokens for row in other.rows()] == [OVERRUN_LIMIT]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 300_000), st.booleans(), st.booleans()),
        max_size=12,
    )
)
def test_a_team_is_held_for_all_that_it_saw_and_for_no_more_than_one_other_saw(answers) -> None:
    cells = memory()
    workers = TargetOutput(cells), TargetOutput(cells)
    for team, tokens, thinks, second in answers:
        workers[second].observe_overrun("p/m", tokens, 1.0, team=team, thinks=thinks)
    for team in "abcd":
        seen = {
            asker: [
                [min(tokens, OVERRUN_LIMIT) for by, tokens, thinks, _ in answers
                 if by == asker and thinks is thinking]
                for thinking in (False, True)
            ]
            for asker in "abc"
        }  # fmt: skip
        for thinks in (False, True):
            most = 0
            for kind in (0, 1) if thinks else (0,):
                each = sorted((max(told[kind], default=0) for told in seen.values()), reverse=True)
                own = max(seen[team][kind], default=0) if team in seen else 0
                most = max(most, own, each[1])
            expected = min(MARGIN * most, OVERRUN_LIMIT)
            assert {worker.allowance("p/m", team, thinks=thinks) for worker in workers} == {
                expected
            }


@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_the_most_counts_within_what_any_model_thinks(tokens: list[int]) -> None:
    beside = TargetOutput(memory())
    for count in tokens:
        beside.observe_overrun("p/m", count, 1.0)
    assert beside.allowance("p/m") == min(MARGIN * max(tokens), OVERRUN_LIMIT)


def memory(slots: int = 16) -> "memoryview[float]":
    return memoryview(array("d", bytes(8 * OUTPUT_CELLS * (slots + 1))))


def test_another_process_holds_for_it_with_its_next_request() -> None:
    """Red before: what one worker saw raised the bound of that worker alone."""
    cells = memory()
    one, two = TargetOutput(cells), TargetOutput(cells)
    assert (two.allowance("p/m"), two.has_overruns()) == (0, False)
    one.observe_overrun("p/m", 500, 1.0)
    assert (two.allowance("p/m"), two.has_overruns()) == (MARGIN * 500, True)
    two.observe_overrun("p/m", 700, 1.0)
    assert one.allowance("p/m") == MARGIN * 700
    assert one.forget("p/m") == 1
    assert two.allowance("p/m") == 0
    one.observe_overrun("p/m", 500, 1.0)
    assert two.allowance("p/m") == MARGIN * 500


def test_a_target_that_does_not_know_a_limit_is_told_twice_by_all_until_it_fades() -> None:
    cells = memory()
    one, two = TargetOutput(cells), TargetOutput(cells)
    assert (two.is_told_twice("p/m"), two.has_overruns()) == (False, False)
    one.observe_unknown_limit("p/m", 5.0)
    assert (two.is_told_twice("p/m"), two.has_overruns()) == (True, True)
    assert (two.allowance("p/m"), two.is_told_twice("p/n")) == (0, False)
    two.age(5.0 + UNSEEN_HALF_LIFE_S)
    assert one.is_told_twice("p/m")
    two.age(5.0 + 3 * UNSEEN_HALF_LIFE_S)
    assert not one.is_told_twice("p/m")


@pytest.mark.parametrize("swept", [True, False])
def test_an_overrun_halves_in_a_day_and_the_next_is_held_for_at_once(swept) -> None:
    beside = TargetOutput(memory())
    beside.observe_overrun("p/m", 10**9, 0.0)
    for day in range(1, 8):
        if swept:
            for hour in range(1, 25):
                beside.age((day - 1) * DAYS + hour * AGING_S)
        else:
            beside.age(day * DAYS)
        assert beside.allowance("p/m") <= 2 * OVERRUN_LIMIT / 2**day + 1
        assert beside.allowance("p/m") >= OVERRUN_LIMIT / 2**day  # an honest one is covered
    assert beside.allowance("p/m") < 0.02 * OVERRUN_LIMIT
    beside.observe_overrun("p/m", 5000, 7 * DAYS)
    assert beside.allowance("p/m") == MARGIN * 5000


def test_an_old_overrun_has_faded_when_the_next_is_noted_though_nobody_swept() -> None:
    cells = memory()
    beside = TargetOutput(cells)
    beside.observe_unknown_limit("p/m", 0.0)
    beside.observe_overrun("p/m", 1, 3 * UNSEEN_HALF_LIFE_S)
    assert not beside.is_told_twice("p/m")


def test_what_was_silent_is_unknown_again() -> None:
    beside = observed(1000, 1000)
    beside.age(UNSEEN_HALF_LIFE_S)
    assert (beside.tokens_per_s("p/m"), beside.hides("p/m")) == (None, True)
    beside.age(2 * UNSEEN_HALF_LIFE_S)
    assert not beside.hides("p/m")
    beside.age(UNUSED_S)
    assert list(beside.rows()) == []


def test_one_more_overrun_of_a_known_target_is_seen_by_all() -> None:
    """Its row is there already, without any."""
    cells = memory()
    one, two = TargetOutput(cells), TargetOutput(cells)
    observed(10, known=one)
    assert not two.has_overruns()
    one.observe_overrun("p/m", 500, 1.0)
    assert two.has_overruns()


def test_a_provider_that_makes_up_models_displaces_its_own() -> None:
    """What is held for at others stays, as far as their places are not all of one provider's."""
    beside = TargetOutput()
    beside.observe_overrun("honest/m", 500, 0.0)
    for number in range(4 * SLOTS):
        beside.observe_overrun(f"wild/{number}", 1, 1.0 + number)
    assert beside.allowance(f"wild/{4 * SLOTS - 1}") == MARGIN
    assert beside.allowance("honest/m") == MARGIN * 500
    assert len(list(beside.rows())) <= SLOTS


@given(
    st.lists(st.binary(min_size=8, max_size=8), min_size=6, max_size=6),
    st.floats(0.0, 1e12),
)
def test_whatever_a_row_holds_the_limits_hold(cells, now_s) -> None:
    held = memory()
    beside = TargetOutput(held)
    beside.observe_overrun("p/m", 1, 0.0)
    (row,) = beside.rows()
    start = (row.slot + 1) * OUTPUT_CELLS
    for cell, raw in enumerate(cells[:4], start + 2):
        held[cell] = struct.unpack("d", raw)[0]
    assert 0 <= beside.allowance("p/m") <= OVERRUN_LIMIT
    assert 0.0 <= (beside.tokens_per_s("p/m") or 0.0) <= RATE_LIMIT_PER_S
    beside.age(now_s)
    assert 0 <= beside.allowance("p/m") <= OVERRUN_LIMIT
