"""What of vLLM's flags a search may turn, on this kind of machine, for this model.

Dimensions come in the order of what they were seen to bring (8B and 70B shapes on one H200, vLLM
0.25.1, 2026-11-22). A choice that this vLLM or this GPU does not know fails to start, which costs a
search one short trial and no more.
"""

import json
from collections.abc import Iterable

from backends.engine.ladder import Host
from backends.engine.tune import Choice, Dimension

DEFAULT = "default"


def space(host: Host, *, exact: bool = False, names: Iterable[str] = ()) -> tuple[Dimension, ...]:
    """`exact` leaves out what changes the model's numbers; `names` picks dimensions."""
    wanted = set(names)
    found = []
    for one in (*_everywhere(host), *(_on_gpus(host) if host.gpu else ())):
        choices = tuple(choice for choice in one.choices if choice.exact or not exact)
        if len(choices) > 1 and (not wanted or one.name in wanted):
            found.append(Dimension(one.name, choices))
    return tuple(sorted(found, key=lambda one: ORDER.index(one.name)))


ORDER = ("weights", "kv", "sequences", "budget", "graphs", "kernel", "attention", "async",
         "speculation")  # fmt: skip


def _everywhere(host: Host) -> tuple[Dimension, ...]:
    budgets = (1024, 2048, 4096, 8192, 16384) if host.gpu else (256, 512, 1024, 4096)
    sequences = (128, 256, 512, 1024, 2048) if host.gpu else (4, 16, 64, 128)
    lengths = (2, 4, 6) if "numba" in host.modules else ()
    return (
        Dimension("kv", (Choice(DEFAULT), Choice("fp8", ("--kv-cache-dtype", "fp8"), exact=False))),
        _numbers("sequences", "--max-num-seqs", sequences),
        _numbers("budget", "--max-num-batched-tokens", budgets),
        Dimension("async", (Choice(DEFAULT), Choice("off", ("--no-async-scheduling",)))),
        Dimension("speculation", (Choice(DEFAULT), *(_ngram(length) for length in lengths))),
    )


def _on_gpus(host: Host) -> tuple[Dimension, ...]:
    fp8 = Choice("fp8", ("--quantization", "fp8"), exact=False)
    kernels = ("marlin", "cutlass", "machete", "exllama", "humming", "triton", "torch")
    attention = ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN")
    return (
        Dimension("weights", (Choice(DEFAULT), *(() if host.quantized else (fp8,)))),
        Dimension("graphs", (
            Choice(DEFAULT),
            Choice("up to 1024", ("--max-cudagraph-capture-size", "1024")),
            Choice("decode only", ("--compilation-config",
                                   '{"cudagraph_mode":"FULL_DECODE_ONLY"}')),
        )),
        Dimension("kernel", (
            Choice(DEFAULT), *(Choice(name, ("--linear-backend", name)) for name in kernels),
        )),
        Dimension("attention", (
            Choice(DEFAULT), *(Choice(name, ("--attention-backend", name)) for name in attention),
        )),
    )  # fmt: skip


def _numbers(name: str, flag: str, values: Iterable[int]) -> Dimension:
    choices = (Choice(str(value), (flag, str(value))) for value in values)
    return Dimension(name, (Choice(DEFAULT), *choices))


def _ngram(length: int) -> Choice:
    how = {"method": "ngram", "num_speculative_tokens": length, "prompt_lookup_max": 4,
           "prompt_lookup_min": 2}  # fmt: skip
    return Choice(f"ngram {length}", ("--speculative-config", json.dumps(how)))
