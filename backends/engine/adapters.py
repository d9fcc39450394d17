"""LoRA adapters of an engine: checks of their folders, and the flags that serve them.

An adapter is a set of small weights added to a model's own, in the layout of the `peft` library.
vLLM selects it by name in a request's `model`, and serves several adapters in one batch.
"""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from backends.engine import loraweights

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # values that vLLM's --max-lora-rank accepts
AT_ONCE = 8  # adapters in one batch; each one takes memory, even if unused
CONFIG, WEIGHTS = "adapter_config.json", ("adapter_model.safetensors", "adapter_model.bin")
_UNSERVED = (
    "use_dora", "lora_bias", "alora_invocation_tokens", "layer_replication", "use_bdlora",
    "use_qalora",
)  # fmt: skip
_NEEDED = ("lora_alpha", "target_modules")  # vLLM does not load an adapter without them
_WHOLE = ("classifier", "score")  # modules that vLLM loads as full weights
_PLAIN_STARTS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")  # others change the model
_LOADED = "Loaded new LoRA adapter: name '{}', path"  # vLLM's log text
_LOADING = "init_static_loras"  # function in the traceback when an adapter fails


class BadAdapter(Exception):
    """A folder does not hold an adapter that an engine could serve; the text gives the reason."""


def check_fits(folder: Path, model: Path | None) -> None:
    """Check that an engine can load the adapter and that it was made for the model.

    Raises `BadAdapter` when either check fails. All weights are read. The check is needed because
    one adapter that an engine cannot load ends its start, for the model and all other adapters.
    """
    document, _ = _read(folder)
    file = next(folder / name for name in WEIGHTS if (folder / name).is_file())
    try:
        loraweights.check(file, document, model)
    except loraweights.BadWeights as error:
        words = str(error)
        told = words if str(folder) in words else f"`{folder}`: {words}"
        raise BadAdapter(told) from error


def split_fitting(
    adapters: Mapping[str, Path], model: Path
) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the adapters that fit the model, and the reason for each one that does not."""
    good: dict[str, Path] = {}
    bad: dict[str, str] = {}
    for name, folder in adapters.items():
        try:
            check_fits(folder, model)
            good[name] = folder
        except BadAdapter as error:
            bad[name] = str(error)
    return good, bad


def find_refused(said: str, names: Iterable[str]) -> str | None:
    """Return the adapter that made a start fail, by vLLM's log, or `None` if none did.

    vLLM loads adapters in the order of `names` and logs each one that it has loaded.
    """
    if _LOADING not in said:
        return None
    return next((name for name in names if _LOADED.format(name) not in said), None)


def rank_of(folder: Path) -> int:
    """Return an adapter's largest rank. Raises `BadAdapter` when no engine can load it."""
    return _read(folder)[1]


def _read(folder: Path) -> tuple[Mapping[str, Any], int]:
    """Return an adapter's configuration and its largest rank. Raises `BadAdapter`."""
    if not folder.is_dir():
        raise BadAdapter(f"the directory `{folder}` does not exist: name the adapter's directory")
    try:
        document = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        kind = document.get("peft_type")
    except FileNotFoundError as error:
        raise BadAdapter(f"`{folder}` is not an adapter: it has no {CONFIG}") from error
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise BadAdapter(f"`{folder}/{CONFIG}` cannot be read: {error}") from error
    if kind != "LORA":
        raise BadAdapter(f"`{folder}/{CONFIG}`: peft_type is {kind!r}; only LORA can be served")
    most = _largest(document, f"`{folder}/{CONFIG}`")
    if words := _unserved_reason(document):
        raise BadAdapter(f"`{folder}/{CONFIG}`: {words}")
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise BadAdapter(f"`{folder}` has no weights: {' or '.join(WEIGHTS)}")
    return document, most


def _unserved_reason(document: Mapping[str, Any]) -> str:
    """Return the reason why vLLM cannot serve this adapter, empty if it can."""
    asks = [field for field in _UNSERVED if document.get(field)]
    asks += ["bias"] if document.get("bias", "none") != "none" else []
    if asks:
        return f"{asks[0]} is on, which vLLM does not serve"
    if missing := [field for field in _NEEDED if field not in document]:
        return f"it has no {missing[0]}, which vLLM needs"
    alpha = document["lora_alpha"]
    is_number = isinstance(alpha, int | float) and not isinstance(alpha, bool)
    if not is_number or not math.isfinite(alpha):
        return f"lora_alpha is {alpha!r}; a number is needed"
    whole = document.get("modules_to_save") or []
    if strange := [part for part in whole if part not in _WHOLE]:
        return f"modules_to_save has {strange[0]!r}, which vLLM does not serve"
    start = document.get("init_lora_weights")
    if isinstance(start, str) and start.lower() not in _PLAIN_STARTS:
        return (
            f"init_lora_weights is {start!r}, which changed the model's own weights;"
            " save it as a plain adapter (peft: path_initial_model_for_weight_conversion)"
        )
    return ""


def _largest(document: Mapping[str, Any], place: str) -> int:
    """Return the largest of the common rank and the ranks of single layers."""
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
    """Return vLLM's flags that serve adapters by name. Raises `BadAdapter`."""
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
        *(_module(name, folder.resolve()) for name, folder in adapters.items()),
    )


def _module(name: str, folder: Path) -> str:
    """Return one value of `--lora-modules`: `NAME=PATH`, or JSON if the path has a comma."""
    if "," not in str(folder):
        return f"{name}={folder}"
    return json.dumps({"name": name, "path": str(folder)})
