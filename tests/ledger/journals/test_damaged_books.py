"""Damaged journals in the books: no row lacks unseen. The scene DAMAGE has every case."""

import logging

import pytest
from damage_books import DamagePlan, State, plan_damage, play_damage, segment_bytes, spans_of
from journal_damage import KINDS, count_of

CASES = {"flips": 12, "blocks": 8, "cuts": 10}


@pytest.fixture(autouse=True)
def quiet():
    """Each finding is a line of the log."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def sample(spans, state: State) -> DamagePlan:
    cases = []
    for kind, count in CASES.items():
        total = count_of(kind, segment_bytes(spans, state))
        cases += [(kind, (2 * place + 1) * total // (2 * count)) for place in range(count)]
    return DamagePlan(state, cases)


@pytest.mark.parametrize("state", State)
def test_what_lacks_is_told_until_it_is_acknowledged(engine, tmp_path, state) -> None:
    spans = spans_of(tmp_path)
    assert list(play_damage(engine, tmp_path, sample(spans, state), spans)) == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_control_a_silent_reader_is_seen(engine, tmp_path) -> None:
    spans = spans_of(tmp_path)
    plan = sample(spans, State.KILLED)
    wrong = list(play_damage(engine, tmp_path, plan, spans, silent=True))
    assert sum("verify is green" in fault for fault in wrong) > 5


def test_a_whole_plan_has_every_bit_block_and_byte(tmp_path) -> None:
    spans = spans_of(tmp_path)
    counts = {(state, kind): set() for state in State for kind in KINDS}
    for plan in plan_damage(spans, 1.0, 1, 10_000):
        for kind, number in plan.cases:
            counts[plan.state, kind].add(number)
    for (state, kind), numbers in counts.items():
        assert numbers == set(range(count_of(kind, segment_bytes(spans, state))))
