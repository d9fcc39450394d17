"""Named simulated engines: their parameters, and the source of each.

A profile is an `EngineShape` with its provenance. `backends.simulator.fit` fitted the models to the
requests named in `source`; `errors` lists the observed errors of the fit. No figure is a vendor's
promise, and none replaces a measurement of the user's own engine.
"""

from dataclasses import dataclass
from pathlib import Path

from backends.simulator.shape import EngineShape, StepTiming
from backends.stepmodel import FittedStepModel

DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True)
class EnginePreset:
    name: str
    gpu: str
    shape: EngineShape
    source: str
    measured: str  # year, and month and day where known
    licence: str
    errors: str


PROFILES: dict[str, EnginePreset] = {
    profile.name: profile
    for profile in (
        EnginePreset(
            name="rtx4090-llama-3.1-8b",
            gpu="RTX-4090",
            shape=EngineShape(
                step=FittedStepModel(
                    a_s=20.556e-3, b_s=31.097e-6, c_s=28.247e-9, d_s=108.032e-6, t0_s=2.296e-3
                ),
                blocks=2588,
                max_num_seqs=128,
                prefill_budget_tokens=2048,
                context_tokens=32768,
            ),
            source=(
                "300 requests, vLLM 0.19.0, Llama-3.1-8B bf16 on one RTX 4090, 2588 blocks of 16"
                " tokens: casys-kaist/LLMServingSim at 5daddb2, bench/examples/RTX4090"
            ),
            measured="2026",
            licence="MIT",
            errors=(
                "one saturated run and four figures for five parameters: the split between b and c"
                " is not identified; TTFT p50 -0.3 %, TTFT without queue -2.7 %, TPOT p50 +0.6 %,"
                " output tokens/s -0.8 %"
            ),
        ),
        EnginePreset(
            name="h200-llama-3.1-8b-fp8",
            gpu="H200",
            shape=EngineShape(
                step=FittedStepModel(
                    a_s=3.347e-3, b_s=17.463e-6, c_s=17.673e-9, d_s=26.206e-6, t0_s=16.985e-3
                ),
                blocks=60255,
                max_num_seqs=256,
                prefill_budget_tokens=8192,
                context_tokens=131072,
                # Fitted by `breakeven engine fit --validate` to the runs at 1, 10, 50 and 100 req/s
                pace=StepTiming(
                    FittedStepModel(
                        a_s=3.19212e-3,
                        b_s=35.8732e-6,
                        c_s=28.8626e-9,
                        d_s=9.98704e-6,
                        t0_s=13.7753e-3,
                    ),
                    captured_s=6.85728e-3,
                    eager_s=19.301e-3,
                    stream_s=116.046e-6,
                    stream_power=1.58707,
                ),
            ),
            source=(
                "our own 3,192 requests at 1 to 100 req/s, vLLM 0.25.1, Llama-3.1-8B shape in FP8"
                " with random weights on one H200, KV 964,064 tokens: data/h200_llama8b_fp8_"
                "requests.csv.gz"
            ),
            measured="2026-11-20",
            licence="Apache-2.0",
            errors=(
                "fitted to the runs at 1, 10, 50 and 100 req/s: TTFT p50 within 7 % up to 25 req/s,"
                " TPOT p50 within 5 %, output tokens/s within 3 %; beyond saturation TTFT p50 is up"
                " to 41 % low. The linear step, which a gateway believes, is fitted to all runs and"
                " misses TTFT p50 by -43 % at 25 req/s"
            ),
        ),
        EnginePreset(
            name="h100-llama-3.1-8b-fp8",
            gpu="H100",
            shape=EngineShape(
                step=FittedStepModel(
                    a_s=4.790e-3, b_s=28.0e-6, c_s=46.8e-9, d_s=27.8e-6, t0_s=13.8e-3
                ),
                blocks=30001,
                max_num_seqs=256,
                prefill_budget_tokens=2048,
                context_tokens=131072,
            ),
            source=(
                "7 rows (throughput, TTFT p50, TPOT p50 at 1 to 200 req/s), vLLM 0.19.0,"
                " Llama-3.1-8B FP8 on one H100-80GB: pChitral/vllm-cost-meter at 3f308c0,"
                " companion of arXiv:2606.11690; KV capacity assumed, 480,000 tokens"
            ),
            measured="2026",
            licence="MIT",
            errors=(
                "TTFT p50 -24 to +22 % near the knee, +11 % at 1 req/s; TPOT p50 -12 to +18 %;"
                " requests/s within 1.4 %; b and c nearly collinear in the data"
            ),
        ),
    )
}
