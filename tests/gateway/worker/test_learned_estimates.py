"""A worker's estimates: known at its start, kept for the next one, forgotten when told to."""

import asyncio
from math import inf

import msgspec
import pytest

from gateway.control.estimate_resets import RESET, SUBJECT
from gateway.worker.learned_estimates import HostEstimates, known_lengths
from ledger.lengths import AnswerLength
from ledger.overrides import DISABLED, Override
from router.estimator_rules import Estimator
from router.forecast import OUTPUTS_TRUSTED
from router.token_ratio import UNUSED_S

KEY, OTHER = ("chat", "search"), ("chat", "support")


@pytest.fixture
def start(tmp_path):
    started = []

    def make(past=(), wall_us: int = 0) -> HostEstimates:
        started.append(HostEstimates(tmp_path, past, lambda: wall_us))
        return started[-1]

    yield make
    for estimates in started:
        estimates.close()


def teach(estimates: HostEstimates, *keys) -> None:
    for key in keys:
        for _ in range(300):
            estimates.learned.ratio.observe(key, 3000, 1000, 1.0)


def order(number: int, model: str | None = None, team: str | None = None, at_us: int = 50):
    subject = SUBJECT + msgspec.json.encode((model, team)).decode()
    return Override(number, subject, RESET, at_us, at_us, "ann")


def known(estimates: HostEstimates, key) -> bool:
    return estimates.learned.ratio.estimate(key, 3000)[0] > 900


def test_a_start_knows_the_lengths_of_past_answers() -> None:
    """Before that many were seen, a request is promised all that it allows."""
    past = [
        AnswerLength("chat", "search", 1000, 200 + n, cut=False) for n in range(OUTPUTS_TRUSTED)
    ]
    lengths = known_lengths([*past, AnswerLength("chat", "support", 1000, 5, cut=True)])
    moments = lengths.moments(KEY, 1000)
    assert moments.count == OUTPUTS_TRUSTED
    assert 200 < moments.p95 < 270
    assert lengths.moments(OTHER, 1000).p95 == inf
    assert known_lengths([]).moments(KEY, 1000).count == 0


def test_a_worker_that_starts_knows_what_others_learned(start) -> None:
    teach(start(), KEY)
    assert known(start(), KEY)


def test_a_reset_is_carried_out_once_by_all_workers_together(start) -> None:
    first, second = start(), start()
    teach(first, KEY, OTHER)
    orders = [Override(1, "target:a", DISABLED, None, 1, "ann"), order(2, team="search")]
    first.reset(orders)
    assert (known(first, KEY), known(first, OTHER)) == (False, True)
    teach(first, KEY)  # since then
    second.reset(orders)
    first.reset(orders)
    assert known(second, KEY)
    second.reset([*orders, order(3)])
    assert (known(first, KEY), known(first, OTHER)) == (False, False)


def test_a_reset_reaches_a_worker_that_did_not_run(start) -> None:
    teach(start(), KEY)
    later = start()
    later.reset([order(1, "chat")])
    assert not known(later, KEY)


def test_lengths_are_those_of_answers_since_the_reset(start) -> None:
    past = [
        AnswerLength(model, team, 100, 5, cut=False, opened_us=at_us)
        for model, team in (KEY, OTHER) for at_us in (10, 20, 60)
    ]  # fmt: skip
    estimates = start(past)
    count = lambda key: estimates.learned.outputs.moments(key, 100).count  # noqa: E731  (of the moment)
    assert (count(KEY), count(OTHER)) == (3, 3)
    estimates.reset([order(1, team="search", at_us=50)])
    assert (count(KEY), count(OTHER)) == (1, 3)
    estimates.learned.outputs.observe(KEY, 100, 5)
    estimates.reset([order(1, team="search", at_us=50)])
    assert count(KEY) == 2


async def test_what_is_old_is_dropped_meanwhile(start) -> None:
    estimates = start(wall_us=round((UNUSED_S + 1.0) * 1e6))
    teach(estimates, KEY)
    keeping = asyncio.create_task(estimates.keep())
    await asyncio.sleep(0)
    assert not known(estimates, KEY)
    keeping.cancel()


def test_values_are_of_all_keys_together(start) -> None:
    estimates = start()
    ratio, lengths = Estimator.BYTES_PER_TOKEN, Estimator.OUTPUT_TOKENS
    assert estimates.statistics() == {(ratio, "keys"): 0.0, (lengths, "keys"): 0.0}
    teach(estimates, KEY, OTHER)
    estimates.learned.outputs.observe(KEY, 100, 50)
    assert estimates.statistics() == {
        (ratio, "keys"): 2.0,
        (ratio, "least"): pytest.approx(3.0, rel=0.02),
        (ratio, "median"): pytest.approx(3.0, rel=0.02),
        (ratio, "most"): pytest.approx(3.0, rel=0.02),
        (ratio, "longest_template"): 64.0,
        (lengths, "keys"): 1.0,
        (lengths, "mean"): 50.0,
    }
