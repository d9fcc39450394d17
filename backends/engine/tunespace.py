"""Flags of vLLM that a search may change, for this machine and model.

Dimensions are ordered by observed gain (8B and 70B shapes on one H200, vLLM 0.25.1, 2026-11-22). A
value that this vLLM or GPU does not support fails to start, which costs one short trial.
"""

import json
from collections.abc import Iterable

from backends.engine.ladder import LadderHost
from backends.engine.tune import FlagDimension, FlagValue

DEFAULT = "default"


def tuning_space(
    host: LadderHost, *, exact: bool = False, names: Iterable[str] = ()
) -> tuple[FlagDimension, ...]:
    """Return the dimensions of a search.

    `exact` leaves out values that change the model's numbers. `names` selects dimensions.
    """
    wanted = set(names)
    found = []
    for dimension in (*_everywhere(host), *(_on_gpus(host) if host.gpu else ())):
        choices = tuple(choice for choice in dimension.choices if choice.exact or not exact)
        if len(choices) > 1 and (not wanted or dimension.name in wanted):
            found.append(FlagDimension(dimension.name, choices))
    return tuple(sorted(found, key=lambda finding: ORDER.index(finding.name)))


ORDER = ("weights", "kv", "sequences", "budget", "graphs", "kernel", "attention", "async",
         "speculation")  # fmt: skip


def _everywhere(host: LadderHost) -> tuple[FlagDimension, ...]:
    budgets = (1024, 2048, 4096, 8192, 16384) if host.gpu else (256, 512, 1024, 4096)
    sequences = (128, 256, 512, 1024, 2048) if host.gpu else (4, 16, 64, 128)
    lengths = (2, 4, 6) if "numba" in host.modules else ()
    return (
        FlagDimension(
            "kv", (FlagValue(DEFAULT), FlagValue("fp8", ("--kv-cache-dtype", "fp8"), exact=False))
        ),
        _numbers("sequences", "--max-num-seqs", sequences),
        _numbers("budget", "--max-num-batched-tokens", budgets),
        FlagDimension("async", (FlagValue(DEFAULT), FlagValue("off", ("--no-async-scheduling",)))),
        FlagDimension("speculation", (FlagValue(DEFAULT), *(_ngram(length) for length in lengths))),
    )


def _on_gpus(host: LadderHost) -> tuple[FlagDimension, ...]:
    fp8 = FlagValue("fp8", ("--quantization", "fp8"), exact=False)
    kernels = ("marlin", "cutlass", "machete", "exllama", "humming", "triton", "torch")
    attention = ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN")
    return (
        FlagDimension("weights", (FlagValue(DEFAULT), *(() if host.quantized else (fp8,)))),
        FlagDimension(
            "graphs",
            (
                FlagValue(DEFAULT),
                FlagValue("up to 1024", ("--max-cudagraph-capture-size", "1024")),
                FlagValue(
                    "decode only", ("--compilation-config", '{"cudagraph_mode":"FULL_DECODE_ONLY"}')
                ),
            ),
        ),
        FlagDimension(
            "kernel",
            (
                FlagValue(DEFAULT),
                *(FlagValue(name, ("--linear-backend", name)) for name in kernels),
            ),
        ),
        FlagDimension(
            "attention",
            (
                FlagValue(DEFAULT),
                *(FlagValue(name, ("--attention-backend", name)) for name in attention),
            ),
        ),
    )


def _numbers(name: str, flag: str, values: Iterable[int]) -> FlagDimension:
    choices = (FlagValue(str(value), (flag, str(value))) for value in values)
    return FlagDimension(name, (FlagValue(DEFAULT), *choices))


def _ngram(length: int) -> FlagValue:
    how = {"method": "ngram", "num_speculative_tokens": length, "prompt_lookup_max": 4,
           "prompt_lookup_min": 2}  # fmt: skip
    return FlagValue(f"ngram {length}", ("--speculative-config", json.dumps(how)))
