"""Lengths of answers between workers: told once, to all others, of a busy one a sample."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.length_exchange import KEYS_LIMIT, NAME_BYTES, RING_SLOTS, LengthExchange

KEY = ("chat", "search")


@pytest.fixture
def open_exchange(tmp_path):
    opened = []

    def make(worker: int, workers: int = 3) -> LengthExchange:
        opened.append(LengthExchange(tmp_path / "lengths", worker, workers))
        return opened[-1]

    yield make
    for exchange in opened:
        exchange.close()


def test_each_of_the_others_hears_an_answer_once(open_exchange, tmp_path) -> None:
    first, second, third = (open_exchange(worker) for worker in range(3))
    first.tell(KEY, 1000, 250, cut=False)
    second.tell(("模型", "équipe"), 7, 0, cut=True)
    assert first.hear() == [(("模型", "équipe"), 7, 0, True)]
    assert second.hear() == [(KEY, 1000, 250, False)]
    assert third.hear() == [(KEY, 1000, 250, False), (("模型", "équipe"), 7, 0, True)]
    assert [first.hear(), second.hear(), third.hear()] == [[], [], []]
    assert (tmp_path / "lengths").stat().st_mode & 0o777 == 0o600


@given(st.lists(st.integers(0, 3 * RING_SLOTS), max_size=6))
def test_of_a_busy_worker_the_newest_are_heard(tmp_path_factory, bursts) -> None:
    path = tmp_path_factory.mktemp("exchange") / "lengths"
    first, second = LengthExchange(path, 0, 2), LengthExchange(path, 1, 2)
    number = 0
    for burst in bursts:
        for _ in range(burst):
            first.tell(KEY, 10, number, cut=False)
            number += 1
        heard = [length.output_tokens for length in second.hear()]
        assert heard == list(range(number - min(burst, RING_SLOTS), number))
    first.close()
    second.close()


def test_what_is_overwritten_while_it_is_read_is_left_out(open_exchange) -> None:
    first, second = open_exchange(0), open_exchange(1)
    for number in range(RING_SLOTS):
        first.tell(KEY, 10, number, cut=False)
    first._cells[first._begun] += 1  # it writes over the oldest now
    heard = [length.output_tokens for length in second.hear()]
    assert heard == list(range(1, RING_SLOTS))


def test_a_worker_that_starts_again_goes_on_and_hears_what_is_new_alone(open_exchange) -> None:
    first, second = open_exchange(0), open_exchange(1)
    first.tell(KEY, 10, 1, cut=False)
    again = open_exchange(0)
    later = open_exchange(1)
    again.tell(KEY, 10, 2, cut=False)
    assert [length.output_tokens for length in second.hear()] == [1, 2]
    assert [length.output_tokens for length in later.hear()] == [2]


def test_of_another_layout_nothing_is_believed(open_exchange, tmp_path) -> None:
    first, second = open_exchange(0), open_exchange(1)
    for _ in range(5):
        first.tell(KEY, 10, 1, cut=False)
    assert len(second.hear()) == 5
    wider = open_exchange(1, workers=4)
    wider.tell(KEY, 10, 2, cut=False)
    assert open_exchange(2, workers=4).hear() == []


def test_names_that_are_too_long_are_not_told_and_few_are_remembered(open_exchange) -> None:
    first, second = open_exchange(0), open_exchange(1)
    first.tell(("m" * NAME_BYTES, "search"), 10, 1, cut=False)
    assert second.hear() == []
    for number in range(KEYS_LIMIT + 2):
        first.tell((f"m{number}", "search"), 10, number, cut=False)
    assert len(first._names) <= KEYS_LIMIT
    assert second.hear()[-1].key == (f"m{KEYS_LIMIT + 1}", "search")
