"""Capacity inside a TPOT promise: right for one shape, for a mix, and against the simulator."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.simulator.model import SimulatedEngine
from backends.simulator.profiles import PROFILES
from backends.simulator.shape import EngineShape, SequenceEventKind
from ledger.fleet.capacity import EngineLimits, ThroughputRate, TrafficSums, rate_of

PLENTY = 10**9
ENGINE = EngineLimits(0.010, 0.001, 0.0, 0.0, 0.0, 0.0305, PLENTY, PLENTY)
EMBEDDER = EngineLimits(1e-6, 0.0, 0.0, 1e-5, 0.020, 0.05, None, 256)


def traffic(*requests: tuple[int, int], cached: int = 0) -> TrafficSums:
    """Of (prompt, output) pairs."""
    return TrafficSums(
        len(requests),
        sum(p for p, _ in requests),
        cached,
        sum(o for _, o in requests),
        sum(p * o for p, o in requests),
        sum(o * o for _, o in requests),
    )


def of_profile(name: str, tpot_s: float) -> EngineLimits:
    shape = PROFILES[name].shape
    step = shape.step
    return EngineLimits(
        step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s, tpot_s, shape.kv_capacity_tokens,
        shape.max_num_seqs,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "sequences"),
    [
        ({}, 20),  # time: 10 ms + 20 * 1 ms
        ({"kv_capacity_tokens": 200 * 7}, 7),  # KV: 200 tokens a sequence
        ({"kv_capacity_tokens": 200 * 7 + 199}, 7),
        ({"max_num_seqs": 5}, 5),
        ({"max_num_seqs": None}, 20),
    ],
)
def test_the_scarcest_of_time_kv_and_batch_decides(limits, sequences) -> None:
    found = rate_of(replace(ENGINE, **limits), traffic((100, 100)))
    rate = pytest.approx(sequences / (0.010 + 0.001 * sequences))
    assert found == ThroughputRate(sequences, rate, rate)


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ({"tpot_s": 0.0105}, ((100, 100),)),  # one sequence takes 11 ms
        ({"tpot_s": 0.005}, ((100, 100),)),  # less than the constant
        ({"kv_capacity_tokens": 199}, ((100, 100),)),  # not one request fits
        ({"kv_capacity_tokens": None}, ((100, 100),)),  # a missing metric is no good news
        ({}, ()),
        ({"b_s": 0.0, "c_s": 0.0, "d_s": 0.0}, ((100, 100),)),  # no sequence takes any time
    ],
)
def test_without_room_for_one_there_is_no_capacity(limits, asked) -> None:
    assert rate_of(replace(ENGINE, **limits), traffic(*asked)) is None


@given(
    name=st.sampled_from(sorted(PROFILES)),
    prompt=st.integers(1, 8_000),
    output=st.integers(1, 2_000),
    tpot_ms=st.integers(5, 200),
)
def test_of_one_shape_the_promise_is_kept_and_one_more_would_break_it(
    name, prompt, output, tpot_ms
) -> None:
    """The step of `n` sequences half way through, those that end being replaced and prefilled."""
    engine = replace(of_profile(name, tpot_ms / 1e3), kv_capacity_tokens=PLENTY, max_num_seqs=None)
    step = PROFILES[name].shape.step

    def step_s(n: int) -> float:
        return step.step_s(
            sequences=n,
            context_tokens=n * (prompt + output / 2),
            prefill_tokens=n * prompt / output,
        )

    found = rate_of(engine, traffic((prompt, output)))
    slack_s = 1e-9  # both sides are floating sums of the same terms
    n = 0 if found is None else found.sequences
    assert n == 0 or step_s(n) <= tpot_ms / 1e3 + slack_s
    assert step_s(n + 1) > tpot_ms / 1e3 - slack_s
    if found is not None:
        assert found.output_tokens_per_s == pytest.approx(n / step_s(n))
        assert found.input_tokens_per_s == pytest.approx(n / step_s(n) * prompt / output)


REQUESTS = st.lists(st.tuples(st.integers(1, 9_000), st.integers(1, 2_000)), min_size=1, max_size=6)


@given(
    name=st.sampled_from(sorted(PROFILES)), requests=REQUESTS, tpot_ms=st.integers(5, 200),
    more=st.floats(1.0, 3.0),
)  # fmt: skip
def test_more_room_never_carries_less_and_a_slower_engine_never_more(
    name, requests, tpot_ms, more
) -> None:
    engine, asked = of_profile(name, tpot_ms / 1e3), traffic(*requests)

    def output(**changes: float) -> float:
        found = rate_of(replace(engine, **changes), asked)
        return 0.0 if found is None else found.output_tokens_per_s

    base = output() * (1 - 1e-12)
    assert output(tpot_s=engine.tpot_s * more) >= base
    assert output(kv_capacity_tokens=int(engine.kv_capacity_tokens * more)) >= base
    assert output(max_num_seqs=int(engine.max_num_seqs * more)) >= base
    for part in ("a_s", "b_s", "c_s", "d_s"):
        assert output(**{part: getattr(engine, part) * more}) * (1 - 1e-12) <= output()


def test_cached_prompts_are_not_prefilled_and_a_mix_is_weighted_by_output() -> None:
    engine = replace(ENGINE, d_s=0.0001)
    cold, warm = (traffic((300, 100), cached=cached) for cached in (0, 300))
    assert rate_of(engine, warm).output_tokens_per_s > rate_of(engine, cold).output_tokens_per_s
    mixed = traffic((1_000, 1), (10, 999))
    assert mixed.context_tokens == pytest.approx((1_000.5 + 999 * (10 + 499.5)) / 1_000)
    assert mixed.kv_tokens == pytest.approx((1_001 + 999 * 1_009) / 1_000)
    assert mixed.prefill_per_output == pytest.approx(1.01)


def test_what_decodes_nothing_takes_its_prefill_one_after_the_other() -> None:
    asked = TrafficSums(10, 5_000, 0, 0, 0.0, 0.0)
    assert rate_of(EMBEDDER, asked) == ThroughputRate(
        1, pytest.approx(500 / (0.020 + 1e-5 * 500)), 0.0
    )


def demo(rng: random.Random) -> tuple[int, int]:
    """Long prompts and answers, two sorts of them."""
    long = rng.random() < 0.3
    prompt, output = (9_000, 4_600) if long else (4_500, 3_300)
    return (int(prompt * rng.lognormvariate(0, 0.3)), int(output * rng.lognormvariate(0, 0.3)))


def bimodal(rng: random.Random) -> tuple[int, int]:
    return (200, 40) if rng.random() < 0.7 else (3_000, 600)


def spread(rng: random.Random) -> tuple[int, int]:
    return max(16, int(rng.lognormvariate(6.2, 0.8))), max(2, int(rng.lognormvariate(5.3, 0.7)))


@pytest.mark.parametrize(
    ("name", "draw", "number", "within"),
    [
        ("rtx4090-llama-3.1-8b", demo, 300, 0.15),  # three fit: one more or less is a lot
        ("rtx4090-llama-3.1-8b", bimodal, 2_000, 0.05),
        ("rtx4090-llama-3.1-8b", spread, 2_000, 0.05),
        ("h100-llama-3.1-8b-fp8", bimodal, 2_000, 0.05),
        ("h200-llama-3.1-8b-fp8", spread, 6_000, 0.05),
    ],
)
def test_the_simulated_engine_kept_full_produces_what_is_computed(
    name, draw, number, within
) -> None:
    """Closed loop in virtual time: as many requests at once as promises of cache and time allow."""
    rng = random.Random(1)
    requests = [draw(rng) for _ in range(number)]
    found = rate_of(of_profile(name, 0.05), traffic(*requests))
    linear = replace(PROFILES[name].shape, pace=None)
    rate = kept_full(linear, requests, within_tpot=by_time(name, requests))
    assert found.output_tokens_per_s == pytest.approx(rate, rel=within)


def test_of_the_h200_as_it_is_simulated_less_is_computed_than_it_does() -> None:
    """The computed rate rests on the linear step that a gateway measures; it errs to this side."""
    name, rng = "h200-llama-3.1-8b-fp8", random.Random(1)
    requests = [spread(rng) for _ in range(6_000)]
    found = rate_of(of_profile(name, 0.05), traffic(*requests))
    rate = kept_full(PROFILES[name].shape, requests, within_tpot=by_time(name, requests))
    assert found.output_tokens_per_s / rate == pytest.approx(0.872, abs=0.005)


def by_time(name: str, requests: list[tuple[int, int]]) -> int:
    alone = replace(of_profile(name, 0.05), kv_capacity_tokens=PLENTY)
    return rate_of(alone, traffic(*requests)).sequences


def kept_full(shape: EngineShape, requests: list[tuple[int, int]], *, within_tpot: int) -> float:
    """Output tokens/s once the first tenth has been admitted."""
    engine, held, now_s = SimulatedEngine(shape), {}, 0.0
    waiting = list(enumerate(requests))[::-1]
    begun: tuple[float, int] | None = None
    while waiting:
        number, (prompt, output) = waiting[-1]
        full = len(held) >= within_tpot
        if full or sum(held.values()) + prompt + output > shape.kv_capacity_tokens:
            now_s = engine.next_s()
            for event in engine.advance(now_s):
                if event.what is SequenceEventKind.FINISHED:
                    del held[event.id]
            continue
        waiting.pop()
        held[str(number)] = prompt + output
        engine.submit(str(number), now_s, prompt_tokens=prompt, output_tokens=output)
        if begun is None and len(waiting) <= 0.9 * len(requests):
            begun = (now_s, engine.totals.generation_tokens)
    assert begun is not None
    return (engine.totals.generation_tokens - begun[1]) / (now_s - begun[0])
