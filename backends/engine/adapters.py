"""LoRA adapters of an engine: what a folder holds, and the flags that serve them by name.

An adapter is small weights over a model's own, in the layout of the `peft` library. vLLM takes a
request for it by its name, as for a model, and several share one batch.
"""

import json
from collections.abc import Mapping
from pathlib import Path

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # rooms for a rank that vLLM can make
AT_ONCE = 8  # adapters in one batch; each further one takes memory, used or not
CONFIG, WEIGHTS = "adapter_config.json", ("adapter_model.safetensors", "adapter_model.bin")


class BadAdapter(Exception):
    """Why a folder is no adapter that an engine could serve."""


def rank_of(folder: Path) -> int:
    """Its rank; raises `BadAdapter` for what no engine could load."""
    if not folder.is_dir():
        raise BadAdapter(f"there is no directory `{folder}`: name the one that holds the adapter")
    try:
        document = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        kind, rank = document.get("peft_type"), document.get("r")
    except FileNotFoundError as error:
        raise BadAdapter(f"`{folder}` is no adapter: it has no {CONFIG}") from error
    except (OSError, ValueError, AttributeError) as error:
        raise BadAdapter(f"`{folder}/{CONFIG}` cannot be read: {error}") from error
    if kind != "LORA":
        raise BadAdapter(f"`{folder}/{CONFIG}`: peft_type is {kind!r}; only LORA can be served")
    if not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= RANKS[-1]:
        raise BadAdapter(f"`{folder}/{CONFIG}`: r is {rank!r}; a rank of 1 to {RANKS[-1]} is taken")
    if document.get("use_dora"):
        raise BadAdapter(f"`{folder}/{CONFIG}`: use_dora is on, which vLLM does not serve")
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise BadAdapter(f"`{folder}` has no weights: {' or '.join(WEIGHTS)}")
    return rank


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
