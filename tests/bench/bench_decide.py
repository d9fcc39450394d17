"""What one decision costs: every candidate survives to the objective, the worst case for time.

Prints a table and writes `build/bench-decide.json`. Figures are CPU time of this thread, a batch of
decisions at a time; the bar is on the least disturbed tenth of the batches, because neighbours on
a shared machine add time and never take any away. Run it as `python tests/bench/bench_decide.py`.
"""

import gc
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from router import explain  # noqa: E402  (the checkout's packages, wherever this is started)
from router.decide import decide  # noqa: E402  (as above)
from router.request_kinds import RequestKind  # noqa: E402  (as above)
from router.types import (  # noqa: E402  (as above)
    ApiState,
    Candidate,
    EngineState,
    Feature,
    OutputMoments,
    Policy,
    RoutingRequest,
    Slo,
    StepModel,
    TargetHealth,
)

BARS_US = {4: 15.0, 8: 30.0, 32: 120.0}
BATCHES = 200
FEATURES = frozenset({Feature.TOOLS, Feature.JSON_SCHEMA, Feature.N})
KINDS = frozenset({RequestKind.CHAT, RequestKind.COMPLETION})


def engine(place: int) -> Candidate:
    return Candidate(
        name=f"pool:llama-8b/{place}",
        pool="llama-8b",
        features=FEATURES,
        kinds=KINDS,
        context_tokens=32_768,
        internal=True,
        expected_pusd=0,
        bound_pusd=40_000_000,
        avoided_pusd=300_000_000,
        budget_room_pusd=10**12,
        bid_price_pusd_per_s=2.0e9,
        engine=EngineState(
            health=TargetHealth.HEALTHY,
            # fit of published H100 measurements of an 8B model, 2026-11-20
            step=StepModel(a_s=4.79e-3, b_s=28e-6, c_s=46.8e-9, d_s=27.8e-6, t0_s=13.8e-3),
            running=10 + 5 * place % 17,
            waiting=0,
            context_tokens=20_000.0 + 100 * place,
            queued_prefill_tokens=500.0,
            kv_capacity_tokens=480_000,
            kv_used_tokens=60_000.0,
            kv_promised_tokens=10_000.0,
            kv_block_tokens=16,
            max_num_seqs=256,
            prefill_budget_tokens=2048,
            prefill_rate_tokens_per_s=3000.0,
            prefix_hit_tokens=256 if place % 3 == 0 else 0,
        ),
    )


def api(place: int) -> Candidate:
    return Candidate(
        name=f"provider-{place}/model",
        pool=None,
        features=FEATURES,
        kinds=KINDS,
        context_tokens=128_000,
        internal=False,
        expected_pusd=250_000_000 + place,
        bound_pusd=900_000_000,
        budget_room_pusd=10**12,
        api=ApiState(ttft_median_ms=450.0, tpot_median_ms=15.0, observations=500),
    )


def candidates(count: int) -> list[Candidate]:
    """Three engines for each API."""
    return [api(place) if place % 4 == 3 else engine(place) for place in range(count)]


REQUEST = RoutingRequest(
    kind=RequestKind.CHAT,
    model="chat-large",
    prompt_tokens=1200,
    prompt_tokens_bound=4200,
    max_tokens=1024,
    output=OutputMoments(count=500, mean=210.0, mean_square=90_000.0, p95=600.0),
    features=frozenset({Feature.TOOLS}),
    salted=True,
)
POLICY = Policy(
    name="default",
    slo=Slo(ttft_ms=500.0, tpot_ms=50.0),
    penalty_pusd=1_500_000_000,
    max_cost_pusd=10**12,
)


def measure_us(count: int) -> list[float]:
    """Sorted microseconds per decision, one figure per batch."""
    frozen = candidates(count)
    decision = decide(REQUEST, POLICY, frozen)
    assert len(decision.order) == count, explain.as_lines(decision)
    rounds = max(20, 2000 // count)
    batches = []
    for _ in range(BATCHES):
        start = time.thread_time_ns()
        for _ in range(rounds):
            decide(REQUEST, POLICY, frozen)
        batches.append((time.thread_time_ns() - start) / rounds / 1000)
    return sorted(batches)


def main() -> int:
    machine = f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"
    figures = []
    print(f"router.decide, all candidates reach the objective; {machine}")
    print(f"{'candidates':>10} {'p10 us':>9} {'median us':>10} {'p99 us':>9} {'bar us':>7}  ok")
    gc.disable()
    for count, bar in BARS_US.items():
        batches = measure_us(count)
        quiet, late = batches[BATCHES // 10], batches[BATCHES * 99 // 100]
        middle = statistics.median(batches)
        ok = quiet <= bar
        print(f"{count:>10} {quiet:9.1f} {middle:10.1f} {late:9.1f} {bar:7.0f}  {ok}")
        figures.append(
            {
                "figure": f"router.decide, {count} candidates",
                "value": round(quiet, 2),
                "unit": "us",
                "bar": bar,
                "ok": ok,
                "note": f"p10 of batches; median {middle:.1f}, p99 {late:.1f}; {machine}",
            }
        )
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    (build / "bench-decide.json").write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(figure["ok"] for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
