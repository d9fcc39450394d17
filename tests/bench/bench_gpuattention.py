"""What attention adds to a prefill step, on a GPU, and how far a linear step model is off there.

On a GPU host with PyTorch it times the steps of an 8B shape (bf16, weights without values) that
read 256 to 2,048 tokens behind 0 to 126,976 cached ones, with two kernels of attention, and writes
`build/bench-gpuattention.json`; `--file` takes an earlier run and needs no GPU. Then both models
are fitted to the steps behind few tokens, as an engine's warm-up can see them, and held against
those behind 16,384 and more.
"""

import argparse
import itertools
import json
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from backends.engine.leastsquares import solve  # noqa: E402  (the checkout's packages)
from backends.stepmodel import attended_tokens  # noqa: E402  (as above)

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, SIZE = 4096, 14336, 32, 32, 8, 128
TOKENS = (256, 512, 1024, 1536, 2048)
BEFORE = (0, 1024, 2048, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536, 98304, 126976)
ROUNDS, HELD_OUT = 7, 16_384
SEEN = (6144, 16384)  # the most cached tokens of the steps that a model is fitted to
Row = tuple[str, int, int, float]  # kernel, tokens read, cached ones, ms


def measured() -> dict[str, Any]:
    """Medians of `ROUNDS`, by the GPU's own clock; needs PyTorch and one GPU with 60 GB free."""
    import torch  # noqa: PLC0415  (on GPU hosts alone)
    from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: PLC0415  (as above)

    kernels = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    attend, own, kv = (
        torch.nn.functional.scaled_dot_product_attention,
        HEADS * SIZE,
        KV_HEADS * SIZE,
    )

    def made(*sizes: int) -> Any:
        return 0.02 * torch.randn(*sizes, device="cuda", dtype=torch.bfloat16)

    def cache() -> Any:
        return made(1, KV_HEADS, max(BEFORE) + max(TOKENS), SIZE)

    layers = [
        (made(HIDDEN, own + 2 * kv), made(own, HIDDEN), made(HIDDEN, 2 * INNER),
         made(INNER, HIDDEN), cache(), cache())
        for _ in range(LAYERS)
    ]  # fmt: skip

    def step(tokens: int, before: int) -> None:
        state = made(tokens, HIDDEN)
        for mixed, out, up, down, keys, values in layers:
            parts = torch.nn.functional.rms_norm(state, (HIDDEN,)) @ mixed
            query, key, value = (
                part.view(1, tokens, -1, SIZE).transpose(1, 2)
                for part in parts.split((own, kv, kv), dim=1)
            )
            keys[:, :, before : before + tokens], values[:, :, before : before + tokens] = (
                key,
                value,
            )
            found = attend(query, key, value, is_causal=True, enable_gqa=True)
            if before:
                past = keys[:, :, :before], values[:, :, :before]
                found = found + attend(query, *past, enable_gqa=True)
            state = state + found.transpose(1, 2).reshape(tokens, own) @ out
            gate, rest = (torch.nn.functional.rms_norm(state, (HIDDEN,)) @ up).split(INNER, dim=1)
            state = state + (torch.nn.functional.silu(gate) * rest) @ down

    rows: list[Row] = []
    for (name, kernel), tokens, before in itertools.product(kernels.items(), TOKENS, BEFORE):
        with torch.no_grad(), sdpa_kernel(kernel):
            took: list[float] = []
            for _ in range(ROUNDS + 2):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                step(tokens, before)
                end.record()
                torch.cuda.synchronize()
                took.append(begin.elapsed_time(end))
        rows.append((name, tokens, before, round(statistics.median(took[2:]), 3)))
    return {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "rows": rows}


def errors(rows: list[Row], most: int, *, quadratic: bool) -> tuple[float, list[float]]:
    """The mean relative error of the steps held out, and what was fitted to those before."""

    def terms(tokens: int, before: int) -> list[float]:
        found = [1.0, float(tokens)]
        return [*found, attended_tokens(before, tokens)] if quadratic else found

    seen = [row for row in rows if row[2] <= most]
    weighed = [[term / row[3] for term in terms(row[1], row[2])] for row in seen]
    values = list(solve(weighed, [1.0] * len(seen)).values)
    missed = [
        abs(sum(map(float.__mul__, values, terms(tokens, before))) / took - 1.0)
        for _, tokens, before, took in rows
        if before >= HELD_OUT and before > most
    ]
    return statistics.mean(missed), values


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", type=Path, help="an earlier run, judged again")
    given = parser.parse_args()
    found = measured() if given.file is None else json.loads(given.file.read_text())
    print(f"{'kernel':7} {'fitted behind':14} {'linear':8} {'quadratic':10} tokens that double d")
    found["held out"] = judged = []
    for kernel, most in itertools.product(sorted({row[0] for row in found["rows"]}), SEEN):
        rows = [tuple(row) for row in found["rows"] if row[0] == kernel]
        linear, _ = errors(rows, most, quadratic=False)
        bent, (a, d, q) = errors(rows, most, quadratic=True)
        judged.append({"kernel": kernel, "fitted_behind": most, "linear": linear,
                       "quadratic": bent, "a_ms": a, "d_ms": d, "q_ms": q})  # fmt: skip
        print(f"{kernel:7} {most:<14} {linear:<8.3f} {bent:<10.3f} {d / q:.0f}")
    if given.file is None:
        path = ROOT / "build" / "bench-gpuattention.json"
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
