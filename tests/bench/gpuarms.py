"""One decode step at batch 1, kernel by kernel: what binds it, with which kernels and flags.

Few layers of a large shape tell what each layer costs, at a fraction of the start; the table over
all layers is then the layers' share times their number. Run in a child process each (gpufork).
"""

# ruff: noqa: PLC0415  (torch and vLLM are there on a GPU host alone, in the forked child)

import random
import time
from pathlib import Path
from typing import Any

PROMPT, STEPS = 512, 32
KEPT = 14  # kernels named in the result, the longest first


def decode(model: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds of one step by the clock, and microseconds of its kernels."""
    import torch
    from vllm import LLM, SamplingParams
    from vllm.inputs import TokensPrompt

    began = time.monotonic()
    llm = LLM(
        model=str(model), load_format="dummy", max_model_len=1024, gpu_memory_utilization=0.4,
        max_num_seqs=16, **options,
    )  # fmt: skip
    started = time.monotonic() - began
    rng = random.Random(1)
    prompt = TokensPrompt(prompt_token_ids=[rng.randrange(100, 30_000) for _ in range(PROMPT)])

    def run(tokens: int) -> float:
        params = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
        at = time.perf_counter()
        llm.generate([prompt], params, use_tqdm=False)
        return time.perf_counter() - at

    def traced(tokens: int) -> dict[str, tuple[float, int]]:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as made:
            run(tokens)
            torch.cuda.synchronize()
        return {
            average.key: (average.self_device_time_total, average.count)
            for average in made.key_averages()
            if average.self_device_time_total > 0
        }

    for _ in range(2):
        run(STEPS + 1)
    clock = [(run(STEPS + 1) - run(1)) / STEPS for _ in range(5)]
    first, whole = traced(1), traced(STEPS + 1)
    steps = {
        name: (
            (us - first.get(name, (0.0, 0))[0]) / STEPS,
            (n - first.get(name, (0.0, 0))[1]) / STEPS,
        )
        for name, (us, n) in whole.items()
    }
    longest = sorted(steps.items(), key=lambda item: -item[1][0])
    return {
        "start_s": round(started, 1),
        "step_ms": round(1e3 * sorted(clock)[len(clock) // 2], 3),
        "kernels_us": round(sum(us for us, _ in steps.values()), 1),
        "launches": round(sum(n for _, n in steps.values()), 1),
        "kernels": [[name[:110], round(us, 2), round(n, 2)] for name, (us, n) in longest[:KEPT]],
    }
