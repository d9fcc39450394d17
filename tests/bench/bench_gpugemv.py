"""Whether 4-bit weights could be read faster at batch 1 than vLLM does: a kernel of our own.

    python3 tests/bench/bench_gpugemv.py --out gemv.json      # where torch, Triton and a GPU are

A matrix times one vector, weights in 4 bits as GPTQ's shuffled layout has them (eight of a column
in a word), scales for 128: the four shapes of a layer of Llama 2 70B. Each is checked against the
product in fp32, timed in a CUDA graph over copies that no cache holds, beside a kernel that only
reads as many bytes. Where a column is cut into parts, the last to end adds them up. A bench:
the product does not use it.
"""

# ruff: noqa: N803  (Triton's constants are upper case)

import argparse
import itertools
import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

SHAPES = {"qkv": (8192, 10240), "o": (8192, 8192), "gate_up": (8192, 57344), "down": (28672, 8192)}
GROUP, BYTES = 128, 400e6
SHIFTS = (0, 16, 4, 20, 8, 24, 12, 28)  # where the k-th of eight lies
# Nibbles become fp16 by their exponent's bits, 8 is taken off, and eight products are added.
DOT = """{
.reg .b32 a<4>; .reg .b32 q8,h,c0,c1,c2; .reg .f16 lo,hi; .reg .f32 f0,f1;
mov.b32 c0, 0x64086408; mov.b32 c1, 0x2c002c00; mov.b32 c2, 0xd480d480;
lop3.b32 a0, $1, 0x000f000f, 0x64006400, 0xea;
lop3.b32 a1, $1, 0x00f000f0, 0x64006400, 0xea;
shr.u32 q8, $1, 8;
lop3.b32 a2, q8, 0x000f000f, 0x64006400, 0xea;
lop3.b32 a3, q8, 0x00f000f0, 0x64006400, 0xea;
sub.f16x2 a0, a0, c0; fma.rn.f16x2 a1, a1, c1, c2;
sub.f16x2 a2, a2, c0; fma.rn.f16x2 a3, a3, c1, c2;
mul.f16x2 h, a0, $2; fma.rn.f16x2 h, a1, $3, h;
fma.rn.f16x2 h, a2, $4, h; fma.rn.f16x2 h, a3, $5, h;
mov.b32 {lo,hi}, h; cvt.f32.f16 f0, lo; cvt.f32.f16 f1, hi; add.f32 $0, f0, f1;
}"""


@triton.jit
def product(x, q, s, parts, ended, out, n, words, DOT: tl.constexpr, PARTS: tl.constexpr,
            BLOCK: tl.constexpr, ROWS: tl.constexpr, UNROLL: tl.constexpr):  # fmt: skip
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part, span = tl.program_id(1), words // PARTS
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in tl.range(part * span, (part + 1) * span, ROWS, loop_unroll_factor=UNROLL):
        rows = first + tl.arange(0, ROWS)
        at = q + rows[:, None] * n + columns[None, :]
        word = tl.load(at, eviction_policy="evict_first")
        x0 = tl.load(x + rows * 4)[:, None]
        x1 = tl.load(x + rows * 4 + 1)[:, None]
        x2 = tl.load(x + rows * 4 + 2)[:, None]
        x3 = tl.load(x + rows * 4 + 3)[:, None]
        scale = tl.load(s + (first // 16) * n + columns).to(tl.float32)
        dots = tl.inline_asm_elementwise(
            DOT, "=f,r,r,r,r,r", [word, x0, x1, x2, x3], dtype=tl.float32, is_pure=True, pack=1
        )
        total += dots * scale[None, :]
    mine = tl.sum(total, 0)
    if PARTS == 1:
        tl.store(out + columns, mine.to(tl.float16))
    else:
        tl.store(parts + part * n + columns, mine)
        tl.debug_barrier()  # all of this part is written before it is counted
        if tl.atomic_add(ended + tl.program_id(0), 1, sem="acq_rel") == PARTS - 1:
            whole = tl.zeros([BLOCK], tl.float32)
            for item in tl.static_range(PARTS):
                whole += tl.load(parts + item * n + columns, cache_modifier=".cg")
            tl.store(out + columns, whole.to(tl.float16))
            tl.store(ended + tl.program_id(0), 0)


@triton.jit
def reading(data, out, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    place = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.int32)
    for step in tl.static_range(TIMES):
        at = data + (place * TIMES + step) * BLOCK + tl.arange(0, BLOCK)
        total ^= tl.load(at, eviction_policy="evict_first")
    tl.store(out + place, tl.xor_sum(total, 0))


def timed_us(calls: list[Callable[[], Any]]) -> float:
    """Of one call: the median of five replays, each call with a copy of its own."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph, found = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    for _ in range(6):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        graph.replay()
        graph.replay()
        ended.record()
        torch.cuda.synchronize()
        found.append(began.elapsed_time(ended) / 2 / len(calls) * 1e3)
    return sorted(found[1:])[2]


def read_us(depth: int, width: int) -> float:
    copies = max(2, int(BYTES // (depth * width // 2)))
    made = [_words(depth // 8 * width) for _ in range(copies)]
    out = torch.empty(1 << 22, dtype=torch.int32, device="cuda")
    return min(
        timed_us([partial(_read, setting, made_value, out) for made_value in made])
        for setting in itertools.product((1024, 2048, 4096), (2, 4), (4, 8))
    )


def _read(setting: tuple[int, int, int], data: torch.Tensor, out: torch.Tensor) -> None:
    block, times, warps = setting
    reading[(data.numel() // (block * times),)](data, out, block, times, num_warps=warps)


def product_us(depth: int, width: int, seconds: float) -> dict[str, Any]:
    """The best of the settings that were tried in so many seconds, and how far off it was."""
    words, copies = depth // 8, max(2, int(BYTES // (depth * width // 2)))
    x = torch.randn(depth, device="cuda").half()
    q = [_words(words, width) for _ in range(copies)]
    s = [(torch.rand(depth // GROUP, width, device="cuda") * 0.01).half() for _ in range(copies)]
    wanted, found = _exact(x, q[0], s[0]), []
    settings = [
        (block, rows, parts, warps, unroll)
        for block, rows, parts, warps, unroll in itertools.product(
            (128, 256, 512, 1024), (4, 8, 16), (1, 2, 4, 8, 16), (2, 4, 8), (1, 2, 4)
        )
        if words // parts >= rows * unroll and words % (parts * rows) == 0
        and 264 <= width // block * parts <= 5280 and 8 <= block * rows // (32 * warps) <= 64
    ]  # fmt: skip
    random.Random(1).shuffle(settings)
    until_s = time.monotonic() + seconds
    for setting in settings:
        if time.monotonic() > until_s:
            break
        parts = torch.empty(setting[2], width, device="cuda")
        ended = torch.zeros(width // setting[0], dtype=torch.int32, device="cuda")
        out = torch.empty(width, device="cuda").half()
        calls = [
            partial(_launch, setting, (x, item, scales, parts, ended, out))
            for item, scales in zip(q, s, strict=True)
        ]
        calls[0]()
        off = float((out.float() - wanted).abs().max() / wanted.abs().max())
        found.append((timed_us(calls), off, setting))
    us, off, setting = min(found)
    read = depth * width / 2 + 2 * depth * width / GROUP
    return {"us": us, "tb_per_s": read / us / 1e6, "off_by": off, "setting": setting,
            "tried": len(found), "of": len(settings)}  # fmt: skip


def _launch(setting: tuple[int, ...], tensors: tuple[torch.Tensor, ...]) -> None:
    block, rows, parts, warps, unroll = setting
    x, q, *others = tensors
    words, width = q.shape
    product[(width // block, parts)](
        x.view(torch.int32), q, *others, width, words, DOT, parts, block, rows, unroll,
        num_warps=warps,
    )  # fmt: skip


def _words(*shape: int) -> torch.Tensor:
    return torch.randint(-(2**31), 2**31 - 1, shape, dtype=torch.int32, device="cuda")


def _exact(x: torch.Tensor, q: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    nibbles = torch.stack([(q >> shift) & 15 for shift in SHIFTS], 1).reshape(-1, q.shape[1])
    groups = range(0, len(nibbles), GROUP)
    return sum(
        ((nibbles[at : at + GROUP].float() - 8) * x[at : at + GROUP, None].float()).sum(0)
        * s[at // GROUP].float()
        for at in groups
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=22.0, help="for the settings of a shape")
    parser.add_argument("--out", type=Path, default=Path("build/bench-gpugemv.json"))
    given = parser.parse_args()
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name, (depth, width) in SHAPES.items():
        us = read_us(depth, width)
        found[name] = {"read_us": us, **product_us(depth, width, given.seconds)}
        print(name, json.dumps(found[name]), flush=True)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
