"""A worker's estimates: known at its start, kept for the next one, forgotten when told to."""

import asyncio
from math import inf
from types import SimpleNamespace

import msgspec
import pytest

from gateway.clock import Clock
from gateway.control.answer_lengths import known_lengths
from gateway.control.estimate_resets import RESET, SUBJECT, TARGET_SUBJECT
from gateway.fleet.length_exchange import LengthExchange
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_stats import TargetStats
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.learning import EstimateLearner
from gateway.table_layout import TableLayout
from gateway.worker.learned_estimates import HostEstimates, open_estimates
from ledger.journals.records import TokenCounts
from ledger.lengths import AnswerLength
from ledger.overrides import DISABLED, Override
from router.estimator_rules import ESTIMATORS, LENGTH_HALF_LIFE_S, UNUSED_S, Estimator
from router.forecast import OUTPUTS_TRUSTED
from router.target_output import EndedAnswer
from router.target_prompts import PromptOverrun

TARGET = "openai/chat"
KEY, OTHER = ("chat", "search"), ("chat", "support")


@pytest.fixture
def experience(tmp_path):
    board = SharedLoadTable(tmp_path / "board", TableLayout(engines=(), apis=(TARGET,), workers=1))
    yield TargetStats(board, 0, Clock(now_s=lambda: 0.0, wall_us=lambda: 0))
    board.close()


@pytest.fixture
def start(tmp_path, experience):
    started = []

    def make(past=(), wall_us: int = 0, exchange=None) -> HostEstimates:
        started.append(HostEstimates(tmp_path, past, lambda: wall_us, experience, exchange))
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
    lengths = known_lengths([*past, AnswerLength("chat", "support", 1000, 5, cut=True)], 0.0)
    moments = lengths.moments(KEY, 1000)
    assert moments.count == OUTPUTS_TRUSTED
    assert 200 < moments.p95 < 270
    assert lengths.moments(OTHER, 1000).p95 == inf
    assert known_lengths([], 0.0).moments(KEY, 1000).count == 0


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


def test_lengths_that_one_worker_saw_are_those_of_the_others(start, tmp_path) -> None:
    """Red before: each of N workers had to see an answer's like for itself."""
    first, second = (
        start(exchange=LengthExchange(tmp_path / "lengths", worker, 2)) for worker in range(2)
    )
    learner = EstimateLearner(first.learned, SimpleNamespace(count_observation=lambda *_: None))
    plan = SimpleNamespace(
        asked=SimpleNamespace(form=None, features=(), members={}, prompt_bytes=400),
        learning_key=KEY, request=SimpleNamespace(n=1),
    )  # fmt: skip
    record = SimpleNamespace(
        tokens=TokenCounts(input=100, output=900), basis="reported", disputed=False, settled_us=1
    )
    for _ in range(30):
        learner.learn(SimpleNamespace(plan=plan), AttemptOutcome("finished", 200), record)
    second.hear()
    moments = first.learned.outputs.moments(KEY, 100)
    assert second.learned.outputs.moments(KEY, 100) == moments
    assert moments.count == 30
    first.learned.exchange.tell(KEY, 100, 10**9, cut=False)
    second.reset([order(1)])  # a lie of before it that nobody heard
    second.hear()
    assert second.learned.outputs.moments(KEY, 100).count == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_alone_tells_nobody_of_lengths(tmp_path, experience, workers) -> None:
    runtime = SimpleNamespace(run_dir=tmp_path, layout=SimpleNamespace(workers=workers))
    clock = Clock(now_s=lambda: 0.0, wall_us=lambda: 0)
    estimates = open_estimates(runtime, 0, (), clock, experience)
    assert (estimates.learned.exchange is not None) is (workers > 1)
    estimates.hear()
    estimates.close()


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
    assert estimates.statistics() == {(estimator, "keys"): 0.0 for estimator in Estimator}
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
        (Estimator.API_LATENCY, "keys"): 0.0,
        (Estimator.OUTPUT_OVERRUN, "keys"): 0.0,
        (Estimator.UNSEEN_OUTPUT, "keys"): 0.0,
        (Estimator.PROMPT_OVERRUN, "keys"): 0.0,
        (Estimator.CACHED_SHARE, "keys"): 0.0,
    }


def learn_all(estimates: HostEstimates, experience: TargetStats) -> None:
    """Let every registered estimator learn something."""
    learned = estimates.learned
    teach(estimates, KEY)
    for _ in range(60):
        learned.outputs.observe(KEY, 100, 5000)
        experience.api(0, ttft_s=9.0, tpot_s=0.5, ok=True)
    learned.target_output.observe_overrun(TARGET, 700, 1.0)
    learned.target_output.observe(TARGET, EndedAnswer(900, 900, 0, 1.0, 1.0), 1.0)
    learned.target_prompts.observe(TARGET, PromptOverrun(3.0, 1.5, 150_000), 1.0)
    learned.cached.shares.observe(TARGET, 2_000, 1_500, 1.0)


def keys_of(estimates: HostEstimates) -> dict[Estimator, float]:
    told = estimates.statistics()
    return {estimator: told[estimator, "keys"] for estimator in Estimator}


@pytest.mark.parametrize(
    ("of", "left"),
    [
        (order(1), set()),
        (order(1, model="chat"),
         {"api_latency", "output_overrun", "unseen_output", "prompt_overrun", "cached_share"}),
        (Override(1, TARGET_SUBJECT + TARGET, RESET, 50, 50, "ann"),
         {"bytes_per_token", "output_tokens"}),
        (Override(1, TARGET_SUBJECT + "other/m", RESET, 50, 50, "ann"), set(Estimator)),
    ],
)  # fmt: skip
def test_every_registered_estimator_is_exported_and_reset(start, experience, of, left) -> None:
    """Red before: what a target billed or hid was of one worker, and no order reached it."""
    estimates = start()
    learn_all(estimates, experience)
    assert set(ESTIMATORS) == set(Estimator)
    assert keys_of(estimates) == dict.fromkeys(Estimator, 1.0)
    estimates.reset([of])
    assert {estimator for estimator, keys in keys_of(estimates).items() if keys} == left


def test_every_registered_estimator_forgets_with_time(start, experience) -> None:
    """What saw nothing for long knows nothing; steady traffic is not concerned."""
    estimates = start()
    learn_all(estimates, experience)
    estimates.age(0.0)
    known = estimates.statistics()
    estimates.age(1.0)
    assert estimates.statistics() == known
    for days in range(1, 120):
        estimates.age(days * 86_400.0)
    assert keys_of(estimates) == dict.fromkeys(Estimator, 0.0)


def test_a_worker_that_starts_holds_for_what_another_saw(start) -> None:
    start().learned.target_output.observe_overrun(TARGET, 700, 1.0)
    assert start().learned.target_output.allowance(TARGET) == 1400
    start().learned.target_prompts.observe(TARGET, PromptOverrun(pictures=3.0), 1.0)
    estimates = start()
    assert estimates.learned.target_prompts.overrun(TARGET) == PromptOverrun(pictures=6.0)
    prompt, told = Estimator.PROMPT_OVERRUN, estimates.statistics()
    assert (told[prompt, "most_pictures"], told[prompt, "most_sounds"]) == (6.0, 0.0)


def test_old_answers_weigh_less_at_a_start() -> None:
    week_us = round(LENGTH_HALF_LIFE_S * 1e6)
    past = [AnswerLength("chat", "search", 100, 500, cut=False, opened_us=0) for _ in range(40)]
    past += [
        AnswerLength("chat", "search", 100, 50, cut=False, opened_us=week_us) for _ in range(40)
    ]
    lengths = known_lengths(past, LENGTH_HALF_LIFE_S)
    assert lengths.mean(KEY) == pytest.approx((20 * 500 + 40 * 50) / 60)
    assert lengths.moments(KEY, 100).count == 60
    assert known_lengths(past, 3 * LENGTH_HALF_LIFE_S).moments(KEY, 100).count == 15
