"""Steps of the optimisation ladder, from the simplest server to a tuned engine.

Each step adds one change to the step that it stands on (`on`), so that its gain has one cause. A
step that the machine cannot run is left out with a reason. A step that fails is reported, and the
next ones are compared with the nearest measured step below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

COMPILE_MODES = ("default", "reduce-overhead", "max-autotune")
SEQUENCES = 256
BUDGET = 2048
LEAST_CONTEXT = 2048  # tokens; the client's calibration sends up to 240 words


@dataclass(frozen=True, slots=True)
class LadderHost:
    """Facts about the host and the model that decide which steps can run.

    `modules` are the optional packages in the engine's environment.
    """

    gpu: bool
    modules: frozenset[str] = frozenset()
    quantized: bool = False
    random_weights: bool = False


@dataclass(frozen=True, slots=True)
class LadderLoad:
    """Load of every step: tokens of a request, for one user and for `users` at once."""

    users: int = 8
    prompt: int = 512
    output: int = 128
    shared: int = 400
    draft: str | None = None
    gpus: int = 1  # naive servers split layers over GPUs, vLLM splits tensors

    @property
    def context(self) -> int:
        """Return the context length in tokens, with a margin for prompts longer than intended."""
        room = self.prompt + self.prompt // 4 + self.output + 64
        return max(LEAST_CONTEXT, -(-room // 256) * 256)


@dataclass(frozen=True, slots=True)
class LadderStep:
    name: str
    kind: Literal["naive", "vllm"]
    on: str | None
    flags: tuple[str, ...]
    skipped: str | None = None
    eager: bool = True  # no compilation; on a CPU this sets an environment variable


@dataclass(frozen=True, slots=True)
class LadderRow:
    """Figures of one step.

    Gains are factors over the step below, totals over the first step; above 1 is better.
    """

    name: str
    note: str = ""
    ttft_s: float | None = None
    alone_tokens_s: float | None = None
    ttft_users_s: float | None = None
    tokens_s: float | None = None
    memory_bytes: int | None = None
    gain_ttft: float | None = None
    gain_tokens: float | None = None
    total_ttft: float | None = None
    total_tokens: float | None = None


def rungs(host: LadderHost, climb: LadderLoad) -> tuple[LadderStep, ...]:
    return (*_naive(host, climb), *_vllm(host, climb))


def _naive(host: LadderHost, climb: LadderLoad) -> list[LadderStep]:
    over = ("--gpus", str(climb.gpus)) if climb.gpus > 1 else ()
    sdpa = ("--attention", "sdpa", *over)
    flash = ("--attention", "flash_attention_2", *over)
    packed = None if "bitsandbytes" in host.modules else "bitsandbytes is not in the environment"
    flashes = None if "flash_attn" in host.modules else "flash_attn is not in the environment"
    found = [
        LadderStep("naive", "naive", None, ("--attention", "eager", *over)),
        LadderStep("+ SDPA", "naive", "naive", sdpa),
        LadderStep("+ FlashAttention 2", "naive", "naive", flash, flashes),
    ]
    found += [
        LadderStep(
            f"+ torch.compile, {mode}", "naive", "+ SDPA", (*sdpa, "--compile", mode), eager=False
        )
        for mode in COMPILE_MODES
    ]
    found.append(LadderStep("+ 4-bit NF4", "naive", "+ SDPA", (*sdpa, "--nf4"), packed))
    batch = (*sdpa, "--batch", str(climb.users))
    return [*found, LadderStep(f"+ static batch of {climb.users}", "naive", "+ SDPA", batch)]


def _vllm(host: LadderHost, climb: LadderLoad) -> list[LadderStep]:
    """Return vLLM's steps: everything off first, then one optimisation on after the other."""
    off: dict[str, tuple[str, ...]] = {
        "CUDA graphs": ("--enforce-eager",),
        "continuous batching": ("--max-num-seqs", "1"),
        "prefix caching": ("--no-enable-prefix-caching",),
        "chunked prefill": (
            "--no-enable-chunked-prefill",
            "--max-num-batched-tokens", str(max(climb.context, BUDGET)),
        ),
        "async scheduling": ("--no-async-scheduling",),
    }  # fmt: skip
    on: dict[str, tuple[str, ...]] = {
        "continuous batching": ("--max-num-seqs", str(SEQUENCES)),
        "prefix caching": ("--enable-prefix-caching",),
        "chunked prefill": ("--enable-chunked-prefill", "--max-num-batched-tokens", str(BUDGET)),
    }
    base: tuple[str, ...] = ("--max-model-len", str(climb.context))
    if climb.gpus > 1:
        base += ("--tensor-parallel-size", str(climb.gpus))
    if host.random_weights:
        base += ("--load-format", "dummy")
    now = dict(off)

    def flags(*more: str) -> tuple[str, ...]:
        return (*base, *(word for words in now.values() for word in words), *more)

    below = "vLLM, all of it off"
    found = [LadderStep(below, "vllm", "+ SDPA", flags())]
    for name in off:
        reason = None if host.gpu or name != "CUDA graphs" else "there is no GPU"
        now[name] = on.get(name, ()) if reason is None else now[name]
        rung = LadderStep(f"+ {name}", "vllm", below, flags(), reason, eager=not host.gpu)
        found.append(rung)
        below = rung.name if reason is None else below
    return [*found, *_last(host, climb, flags, below)]


def _last(host: LadderHost, climb: LadderLoad, flags: Any, below: str) -> list[LadderStep]:
    """Return the last steps, which all stand on the same step.

    They change the model's numbers, or need a draft model.
    """
    fp8 = "there is no GPU" if not host.gpu else "the model is quantized already"
    reason = fp8 if host.quantized or not host.gpu else None
    ngram = (
        '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":2}'
    )
    matcher = None if "numba" in host.modules else "numba is not in the environment"
    eager = not host.gpu
    found = [
        LadderStep("+ FP8 weights", "vllm", below, flags("--quantization", "fp8"), reason, eager),
        LadderStep("+ FP8 KV cache", "vllm", below, flags("--kv-cache-dtype", "fp8"), None, eager),
        LadderStep("+ speculation, n-grams", "vllm", below, flags("--speculative-config", ngram),
             matcher, eager),
    ]  # fmt: skip
    if climb.draft is not None:
        model = f'{{"method":"draft_model","model":"{climb.draft}","num_speculative_tokens":4}}'
        drafted = flags("--speculative-config", model)
        found.append(LadderStep("+ speculation, draft model", "vllm", below, drafted, None, eager))
    return found


def lines(made: Sequence[LadderStep], done: Mapping[str, Mapping[str, Any]]) -> list[LadderRow]:
    """Return a row of each step: measured, left out, failed or not yet run."""
    measured = {rung.name: done[rung.name] for rung in made if "ttft_s" in done.get(rung.name, {})}
    by_name = {rung.name: rung for rung in made}
    first = measured.get(made[0].name)
    found = []
    for rung in made:
        if rung.skipped is not None and rung.name not in measured:  # measured on a host that could
            found.append(LadderRow(rung.name, f"left out: {rung.skipped}"))
            continue
        entry = done.get(rung.name)
        if entry is None:
            found.append(LadderRow(rung.name, "not yet"))
        elif rung.name not in measured:
            found.append(
                LadderRow(rung.name, f"failed: {entry.get('failed', 'no reason was kept')}")
            )
        else:
            base, other = _below(rung, by_name, measured)
            note = f"over {other}" if other not in (None, rung.on) else ""
            found.append(_line(rung.name, note, entry, base, first))
    return found


def _below(
    rung: LadderStep, by_name: Mapping[str, LadderStep], measured: Mapping[str, Mapping[str, Any]]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """Return the figures and name of the nearest measured step below, or two `None`."""
    on = rung.on
    while on is not None and on not in measured:
        on = by_name[on].on
    return (None, None) if on is None else (measured[on], on)


def _line(
    name: str,
    note: str,
    entry: Mapping[str, Any],
    base: Mapping[str, Any] | None,
    first: Mapping[str, Any] | None,
) -> LadderRow:
    return LadderRow(
        name,
        note,
        entry["ttft_s"],
        entry["alone_tokens_s"],
        entry["ttft_users_s"],
        entry["tokens_s"],
        entry["memory_bytes"],
        gain_ttft=_ratio(base, entry, "ttft_s"),
        gain_tokens=_ratio(entry, base, "tokens_s"),
        total_ttft=_ratio(first, entry, "ttft_s"),
        total_tokens=_ratio(entry, first, "tokens_s"),
    )


def _ratio(
    above: Mapping[str, Any] | None, below: Mapping[str, Any] | None, name: str
) -> float | None:
    """Return the ratio of one figure in two steps, or `None` if either is missing."""
    if not above or not below or not below[name]:
        return None
    return float(above[name]) / float(below[name])
