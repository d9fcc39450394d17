"""LoRA adapters of an engine: what a folder holds, and the flags that serve them by name.

An adapter is small weights over a model's own, in the layout of the `peft` library. vLLM takes a
request for it by its name, as for a model, and several share one batch.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backends.engine.safetensors import NoTensors, Tensor, tensors

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # rooms for a rank that vLLM can make
AT_ONCE = 8  # adapters in one batch; each further one takes memory, used or not
CONFIG, WEIGHTS = "adapter_config.json", ("adapter_model.safetensors", "adapter_model.bin")
_UNSERVED = (
    "use_dora", "lora_bias", "alora_invocation_tokens", "layer_replication", "use_bdlora",
    "use_qalora",
)  # fmt: skip
_OUTER = {"A.weight": 1, "B.weight": 0}  # which side of a factor is not the rank
_WITHIN = "base_model.model."  # before the name that a module has in the model itself


class BadAdapter(Exception):
    """Why a folder is no adapter that an engine could serve."""


def check_fits(folder: Path, model: Path) -> None:
    """Raises `BadAdapter` where it was made for a model of other shapes, or is not all there.

    One adapter that an engine cannot load ends its start, for the model and all other adapters.
    """
    rank_of(folder)
    file = folder / WEIGHTS[0]
    if not file.is_file():
        return  # the other form is a program of Python's: only an engine reads it
    try:
        mine, its = tensors(file, whole=True), _of_model(model)
    except (NoTensors, OSError) as error:
        raise BadAdapter(str(error)) from error
    for name, one in mine.items():
        module, _, side = name.removeprefix(_WITHIN).rpartition(".lora_")
        weight = its.get(f"{module}.weight")  # a quantized model's have other names
        if weight is None or len(one.shape) != 2 or side not in _OUTER:
            continue
        if (size := one.shape[_OUTER[side]]) not in weight.shape:
            there = " x ".join(map(str, weight.shape))
            words = f"{module} is {there} there, and {side} of the adapter has {size}"
            raise BadAdapter(f"`{folder}` is not for the model `{model}`: {words}")


def _of_model(model: Path) -> Mapping[str, Tensor]:
    found: dict[str, Tensor] = {}
    for path in model.glob("*.safetensors"):
        found |= tensors(path)
    return found


def rank_of(folder: Path) -> int:
    """Its largest rank; raises `BadAdapter` for what no engine could load."""
    if not folder.is_dir():
        raise BadAdapter(f"there is no directory `{folder}`: name the one that holds the adapter")
    try:
        document = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        kind = document.get("peft_type")
    except FileNotFoundError as error:
        raise BadAdapter(f"`{folder}` is no adapter: it has no {CONFIG}") from error
    except (OSError, ValueError, AttributeError) as error:
        raise BadAdapter(f"`{folder}/{CONFIG}` cannot be read: {error}") from error
    if kind != "LORA":
        raise BadAdapter(f"`{folder}/{CONFIG}`: peft_type is {kind!r}; only LORA can be served")
    most = _largest(document, f"`{folder}/{CONFIG}`")
    asks = [field for field in _UNSERVED if document.get(field)]
    asks += ["bias"] if document.get("bias", "none") != "none" else []
    if asks:
        raise BadAdapter(f"`{folder}/{CONFIG}`: {asks[0]} is on, which vLLM does not serve")
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise BadAdapter(f"`{folder}` has no weights: {' or '.join(WEIGHTS)}")
    return most


def _largest(document: Mapping[str, Any], place: str) -> int:
    """Of the rank of all layers and those of single ones."""
    pattern = document.get("rank_pattern") or {}
    single = pattern if isinstance(pattern, Mapping) else {"rank_pattern": pattern}
    most = 0
    for field, rank in {"r": document.get("r"), **single}.items():
        if not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= RANKS[-1]:
            words = f"{field} is {rank!r}; a rank of 1 to {RANKS[-1]} is taken"
            raise BadAdapter(f"{place}: {words}")
        most = max(most, rank)
    return most


def flags(adapters: Mapping[str, Path]) -> tuple[str, ...]:
    """VLLM's flags for them, by name; raises `BadAdapter`."""
    if not adapters:
        return ()
    most = max(rank_of(folder) for folder in adapters.values())
    room = next(rank for rank in RANKS if rank >= most)
    return (
        "--enable-lora",
        *("--max-loras", str(min(len(adapters), AT_ONCE))),
        *("--max-cpu-loras", str(len(adapters))),
        *("--max-lora-rank", str(room)),
        "--lora-modules",
        *(f"{name}={folder.resolve()}" for name, folder in adapters.items()),
    )
