"""Rows of one engine, as telemetry writes them into the books that the dashboard's tests fill."""

import math
import random

S = 10**6
STEP_S = 0.055  # of each output token; with its prompt about 320 tokens a second


def capacity_row(now_us: int) -> dict:
    return {
        "at_us": now_us, "pool": "llama-70b", "engine": "pool:llama-70b/0",
        "kv_capacity_tokens": 291_424, "slo_ttft_ms": 1000.0, "slo_tpot_ms": 60.0,
        "step_a_s": 1e-6, "step_b_s": STEP_S, "step_c_s": 0.0, "step_d_s": 0.0, "step_t0_s": 0.0,
        "source": "measured",
    }  # fmt: skip


def position_row(now_us: int) -> dict:
    return {
        "journal": "history", "worker": "0", "host": "here", "segment": 0, "offset": 1,
        "applied_us": now_us,
    }  # fmt: skip


def sample_rows(now_us: int, *, simulated: bool) -> list[dict]:
    """Two hours of one engine, every ten seconds."""
    rng = random.Random(3)
    rows = []
    prompt = output = preemptions = 0
    for n in range(720):
        wave = 0.5 + 0.4 * math.sin(n / 60)
        running = int(24 * wave + rng.random() * 6)
        prompt += int(9_000 * wave)
        output += int(500 * wave + rng.random() * 50)
        preemptions += rng.random() < 0.01
        rows.append(
            {
                "at_us": now_us - (720 - n) * 10 * S, "pool": "llama-70b",
                "engine": "pool:llama-70b/0", "health": "healthy", "running": running,
                "waiting": max(0, running - 25), "kv_usage_ppm": int(1e6 * min(0.97, wave)),
                "kv_promised_ppm": int(1e5 * wave), "prompt_tokens_total": prompt,
                "output_tokens_total": output, "preemptions_total": preemptions,
                "prefix_hit_ppm": 310_000, "busy_us": int(1e7 * wave),
                "step_feedback_ppm": 1_020_000 + 80 * n, "load_ppm": int(1e6 * wave),
                "bid_price_pusd_per_s": int(4e8 * max(0.0, wave - 0.6)), "age_us": 400_000,
                "simulated": simulated,
            }
        )  # fmt: skip
    return rows
