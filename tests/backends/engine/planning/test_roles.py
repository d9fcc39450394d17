"""Whole engines and engines in roles: by hand, and as simulated engines serve the rates."""

from decimal import Decimal
from math import ceil

import pytest

from backends.engine.loadfloor import UserLoad
from backends.engine.planning.question import ParallelLayout, PlanFigure, PlanRequest
from backends.engine.planning.roles import RoleLayout, role_layouts
from backends.engine.planning.speed import OVER_FLOORS
from backends.simulator.model import SimulatedEngine
from backends.simulator.shape import EngineShape, KvHandover, SequenceEventKind
from backends.stepmodel import FittedStepModel

STEP = FittedStepModel(a_s=4e-3, b_s=0.0, c_s=3e-8, d_s=1.6e-5, t0_s=0.0)
REAL = FittedStepModel(
    a_s=OVER_FLOORS * STEP.a_s, b_s=0.0, c_s=OVER_FLOORS * STEP.c_s, d_s=OVER_FLOORS * STEP.d_s,
    t0_s=0.0,
)  # fmt: skip
KV_TOKENS, KV_BYTES = 400_000, 131_072
PROMPT, OUTPUT = 2000, 200
RUN_S = 40.0


def layouts(
    tpot_ms: float | None, ttft_ms: float | None = None, *, kv_tokens: int = KV_TOKENS,
    prompt: int = PROMPT, usd: Decimal | None = None, gpus: int = 1,
) -> dict[str, RoleLayout]:  # fmt: skip
    figures = (
        PlanFigure("kv_tokens", kv_tokens, "tokens", ""),
        PlanFigure("kv_bytes_per_token", KV_BYTES, "B", ""),
    )
    asked = PlanRequest(tpot_ms=tpot_ms, ttft_ms=ttft_ms, load=UserLoad(32, prompt, OUTPUT))
    found = role_layouts(STEP, asked, ParallelLayout(gpus), figures, usd)
    return {each.layout: each for each in found}


def test_without_a_promised_time_per_token_there_is_nothing_to_compare() -> None:
    assert layouts(None, 500.0) == {}


def test_a_whole_replica_by_hand() -> None:
    """Steps of 30 ms: 24.8 ms are left; a sequence takes 82 us of KV and 10 prompt tokens."""
    made = layouts(30.0)["2 whole"]
    sequences = (0.030 - 5.2e-3) / (3.9e-8 * 2100 + 2.08e-5 * PROMPT / OUTPUT)
    assert made.tpot_s == pytest.approx(0.030)
    assert made.requests_s == pytest.approx(2 * sequences / (OUTPUT * 0.030))
    assert made.binds == "time per token"


def test_engines_apart_by_hand() -> None:
    """A prompt takes 46.8 ms to read, and 46.2 ms to move: 20 ms and 262 MB at 10 GB/s."""
    made = layouts(30.0)["1 prefill, 1 decode"]
    read_s = 5.2e-3 + PROMPT * 2.08e-5
    assert made.requests_s == pytest.approx(1 / read_s)
    assert made.binds == "prompts"
    moved_s = 0.02 + PROMPT * KV_BYTES / 10e9
    assert made.tpot_s is not None
    assert made.ttft_s == pytest.approx(read_s + moved_s + made.tpot_s)
    assert made.tpot_s == pytest.approx(
        5.2e-3 + OUTPUT * made.requests_s * made.tpot_s * 3.9e-8 * (PROMPT + OUTPUT / 2)
    )


def test_what_binds_is_named_and_the_most_is_marked_by_number_of_copies() -> None:
    strict = layouts(8.0, 1000.0)
    assert [each.layout for each in strict.values() if each.advised] == [
        "1 prefill, 1 decode", "2 prefill, 2 decode",
    ]  # fmt: skip
    loose = layouts(50.0, 1000.0)
    assert [name for name, each in loose.items() if each.advised] == ["2 whole", "4 whole"]
    assert layouts(50.0, kv_tokens=4400)["2 whole"].binds == "KV"
    assert layouts(50.0, 50.0)["2 whole"].binds == "first token"
    late = layouts(50.0, 60.0)["1 prefill, 1 decode"]
    assert (late.requests_s, late.binds, late.advised) == (0.0, "first token", False)
    none = layouts(5.0)
    assert {each.requests_s for each in none.values()} == {0.0}
    assert not any(each.advised for each in none.values())


def test_dollars_are_of_all_gpus_of_all_copies() -> None:
    made = layouts(30.0, usd=Decimal("3.60"), gpus=2)["4 whole"]
    assert made.gpus == 8
    assert made.usd_per_million == pytest.approx(8 * 1e-3 / (made.requests_s * OUTPUT) * 1e6)
    assert layouts(30.0)["4 whole"].usd_per_million is None


# ------------------------------------------------------------ as engines serve it


def served(made: RoleLayout, share: float, tpot_s: float) -> tuple[float, float]:
    """Return the worst first token and time per token of one whole replica at a share of its rate.

    After a quarter of the run, when it is as full as it gets.
    """
    copies = int(made.layout.split()[0])
    rate = made.requests_s / copies * share
    assert made.tpot_s is not None
    sequences = made.requests_s / copies * OUTPUT * made.tpot_s
    free_s = tpot_s - REAL.a_s - REAL.c_s * sequences * (PROMPT + OUTPUT / 2)
    chunk = int(free_s / REAL.d_s)
    engine = engine_of(ceil(sequences) + 1, chunk + ceil(sequences))
    return worst(engine, rate)


def engine_of(sequences: int, budget: int) -> SimulatedEngine:
    shape = EngineShape(
        step=REAL, blocks=KV_TOKENS // 16 + 1, max_num_seqs=sequences,
        prefill_budget_tokens=budget, prefix_caching=False,
    )  # fmt: skip
    return SimulatedEngine(shape)


def worst(
    engine: SimulatedEngine, rate: float, kv: KvHandover | None = None
) -> tuple[float, float]:
    asked, events = {}, []
    for number in range(int(RUN_S * rate)):
        at_s = asked[str(number)] = number / rate
        events += engine.advance(at_s)
        engine.submit(str(number), at_s, prompt_tokens=PROMPT, output_tokens=OUTPUT, kv=kv)
    events += engine.advance(RUN_S)
    first = {each.id: each.at_s for each in events if each.what is SequenceEventKind.FIRST}
    late = [name for name, at_s in asked.items() if RUN_S / 4 < at_s < RUN_S * 0.7]
    ttft_s = max(first.get(name, RUN_S) - asked[name] for name in late)
    gaps = [
        (each.at_s - first[each.id]) / (OUTPUT - 1)
        for each in events
        if each.what is SequenceEventKind.FINISHED and each.id in late
    ]
    return ttft_s, max(gaps)


@pytest.mark.parametrize(("tpot_ms", "ttft_ms"), [(30.0, 500.0), (12.0, 800.0), (50.0, 400.0)])
def test_a_simulated_replica_serves_nearly_that_much_and_not_more(tpot_ms, ttft_ms) -> None:
    made = layouts(tpot_ms, ttft_ms)["2 whole"]
    ttft_s, gap_s = served(made, 0.93, tpot_ms / 1e3)
    assert ttft_s <= ttft_ms / 1e3
    assert gap_s <= tpot_ms / 1e3
    ttft_s, gap_s = served(made, 1.1, tpot_ms / 1e3)
    assert ttft_s > ttft_ms / 1e3 or gap_s > tpot_ms / 1e3


@pytest.mark.parametrize("tpot_ms", [8.0, 12.0])
def test_simulated_engines_apart_serve_nearly_that_much_and_not_more(tpot_ms) -> None:
    made = layouts(tpot_ms)["1 prefill, 1 decode"]
    for share, is_kept in ((0.95, True), (1.1, False)):
        rate = made.requests_s * share
        _, gap_s = worst(engine_of(512, 8192), rate, KvHandover(is_moved=True))
        assert (late_s(rate) < 0.2 and gap_s <= tpot_ms / 1e3) is is_kept


def late_s(rate: float) -> float:
    """Return how long after the run a prefill engine has read all that was sent in it."""
    engine = engine_of(64, PROMPT)
    for number in range(int(RUN_S * rate)):
        engine.advance(number / rate)
        engine.submit(str(number), number / rate, prompt_tokens=PROMPT, output_tokens=1)
    return max(each.at_s for each in engine.advance(10 * RUN_S)) - RUN_S
