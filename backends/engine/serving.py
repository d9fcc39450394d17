"""Measured throughput of GPUs at 1 s to the first token and 60 ms for each further token.

Prompts have 512 tokens and answers 256, with Poisson arrivals. Each figure is the highest offered
rate inside the SLO: 99 % of requests had their first token within 1 s, and 90 % their tokens within
60 ms (99 % in our own measurements). An engine inside an SLO serves less than a saturated one.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServingFigure:
    """Measured throughput of a model. `output_tokens_per_s` is of all `gpus` GPUs together."""

    gpu: str  # name in `catalog`
    model: str
    weights_gib: float
    gpus: int
    output_tokens_per_s: float
    ttft_ms_p99: float
    tpot_ms_p90: float
    source: str
    input_per_output: float = 2.0


_METER = "vllm-cost-meter at 3f308c0, vLLM 0.19, companion of arXiv:2606.11690"
_OWN = "one H200, vLLM 0.25.1, random weights, 2026-11-20"

SERVED: tuple[ServingFigure, ...] = (
    ServingFigure(
        "H100", "Llama-3.1-8B, 16 bit", 15.0, 1, 5265.1, 259.0, 36.3, f"{_METER}, 25 req/s"
    ),
    ServingFigure("H100", "Llama-3.1-8B, FP8", 8.5, 1, 7596.3, 356.2, 44.9, f"{_METER}, 50 req/s"),
    ServingFigure(
        "H100", "Qwen3-30B-A3B, 16 bit", 57.0, 1, 4714.0, 271.1, 47.2, f"{_METER}, 25 req/s"
    ),
    ServingFigure(
        "H100", "Qwen3-30B-A3B, FP8", 29.0, 1, 7362.7, 264.2, 43.6, f"{_METER}, 50 req/s"
    ),
    ServingFigure("H100", "Mixtral-8x7B, FP8", 44.0, 2, 7064.1, 441.7, 54.8, f"{_METER}, 50 req/s"),
    ServingFigure(
        "A100-80GB-PCIe",
        "Llama-3.1-8B, 16 bit",
        15.0,
        1,
        1235.9,
        165.7,
        19.9,
        f"{_METER}, 5 req/s",
    ),
    ServingFigure(
        "A100-80GB-PCIe", "Llama-3.1-8B, FP8", 8.5, 1, 1251.1, 199.8, 14.0, f"{_METER}, 5 req/s"
    ),
    ServingFigure(
        "A100-80GB-PCIe",
        "Qwen3-30B-A3B, FP8",
        29.0,
        1,
        1225.7,
        163.7,
        26.5,
        f"{_METER}, 5 req/s",
    ),
    ServingFigure("H200", "Llama-3.1-8B, FP8", 8.5, 1, 5684.0, 143.0, 11.1, f"{_OWN}, 25 req/s"),
    ServingFigure(
        "H200", "Llama-2-70B, FP8", 66.0, 1, 354.0, 531.8, 22.4, f"{_OWN}, 8 at once, rough"
    ),
)
