"""Sizes of a model from its `config.json`: parameters, bytes, KV bytes per token.

Reads decoder-only transformers of the Llama family (Llama, Mistral, Qwen 2 and 3, Mixtral and Qwen
mixtures of experts) and their usual quantizations. Weights are summed from the safetensors headers
if the files exist, else computed from the shapes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.engine.catalog import Number
from backends.engine.safetensors import NoTensors, tensors

_DTYPE_BYTES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2}
_FAMILIES = frozenset(
    ("llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen2_moe", "qwen3_moe", "ministral")
)
_BY_BITS = ("awq", "gptq")
_METHODS = (*_BY_BITS, "fp8", "compressed-tensors", "none")
_JSON_LIMIT = 100_000_000  # bytes; indexes of the largest models have about 10,000 lines
_INDEX = "model.safetensors.index.json"
_SECOND_COPY = "consolidated"  # Mistral's own copy of the weights


class UnsupportedModel(ValueError):
    """The directory holds no model, or one of an unknown family; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Storage of linear layers. `bits` per weight include scales and zero points."""

    method: str  # "none", "awq", "gptq", "fp8", "compressed-tensors"
    bits: float
    compute: Number  # number format of the matrix products


@dataclass(frozen=True, slots=True)
class ModelConfig:
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    """Width of the feed-forward part that one token passes through."""
    vocabulary: int
    context_tokens: int
    dtype_bytes: int
    linear_parameters: int
    active_linear_parameters: int
    table_parameters: int
    weights: Weights
    stored_bytes: int | None
    experts: int = 0  # in each layer; 0 for a dense model
    experts_used: int = 0  # experts that one token uses

    @property
    def parameters(self) -> int:
        return self.linear_parameters + self.table_parameters

    @property
    def active_parameters(self) -> int:
        """Return the parameters that one token uses; fewer than all in a mixture of experts."""
        return self.active_linear_parameters + self.table_parameters

    @property
    def weight_bytes(self) -> int:
        return self.stored_bytes or self._bytes(self.linear_parameters)

    @property
    def active_weight_bytes(self) -> int:
        """Return the weight bytes that one decode step of one sequence reads from memory."""
        return self.read_weight_bytes(1)

    def read_weight_bytes(self, sequences: float) -> int:
        """Return the weight bytes that one step of `sequences` sequences reads from memory.

        Each sequence's token chooses its own experts. If the choice is uniform, the probability
        that no sequence uses an expert is the `sequences`-th power of the probability for one. With
        32 sequences all of 8 experts are read at 2 per token, and 87 % of 128 at 8 per token.
        """
        idle = self.linear_parameters - self.active_linear_parameters
        left_out = 1 - self.experts_used / self.experts if self.experts else 1.0
        unread = idle * left_out ** max(0.0, sequences - 1)
        return self.weight_bytes - int(unread * self.weights.bits / 8)

    def _bytes(self, linear: int) -> int:
        return int(linear * self.weights.bits / 8) + self.table_parameters * self.dtype_bytes

    def kv_bytes_per_token(self, *, element_bytes: int | None = None) -> int:
        return 2 * self.layers * self.kv_heads * self.head_dim * (element_bytes or self.dtype_bytes)


def read_model(directory: Path) -> ModelConfig:
    """Read a model directory or a `config.json`. Raises `UnsupportedModel`."""
    path = directory / "config.json" if directory.is_dir() else directory
    document = _document(directory, path)
    within = document.get("text_config") or {}
    if not isinstance(within, Mapping):
        raise UnsupportedModel(f"{path}: text_config is {within!r}; an object is needed")
    config: dict[str, Any] = {**document, **within}
    family = config.get("model_type")
    if not isinstance(family, str) or family not in _FAMILIES:
        known = f"known are {', '.join(sorted(_FAMILIES))}"
        if family is None:
            raise UnsupportedModel(f"{path}: `model_type` is missing; {known}")
        raise UnsupportedModel(f"{path}: models of the type `{family}` cannot be planned; {known}")
    try:
        _refuse_impossible(path, config)
        return _model(path, config, _quantization(config))
    except KeyError as error:
        raise UnsupportedModel(f"{path}: {error.args[0]} is missing") from error
    except UnsupportedModel:
        raise
    except (ArithmeticError, TypeError, ValueError) as error:
        raise UnsupportedModel(f"{path}: a number is invalid: {error}") from error


_COUNTED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_OPTIONAL = ("num_key_value_heads", "head_dim", "intermediate_size", "moe_intermediate_size")
_FROM_ZERO = (
    "max_position_embeddings", "num_local_experts", "num_experts", "num_experts_per_tok",
    "shared_expert_intermediate_size",
)  # fmt: skip
_GGUF = "GGUF, which cannot be planned: name the folder of the original model, with its config.json"


def _document(directory: Path, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(_read_bounded(path).decode("utf-8"))
    except FileNotFoundError as error:
        if not directory.is_dir():
            raise UnsupportedModel(f"{directory} does not exist") from error
        words = f"it holds {_GGUF}" if any(directory.glob("*.gguf")) else "it has no config.json"
        raise UnsupportedModel(f"{directory} is not a model: {words}") from error
    except OSError as error:
        raise UnsupportedModel(f"{path} cannot be read: {error.strerror}") from error
    except UnsupportedModel:
        raise
    except ValueError as error:
        raise UnsupportedModel(f"{path} is not JSON: {error}") from error
    except RecursionError as error:
        raise UnsupportedModel(f"{path} is not JSON: it is nested too deep") from error
    if not isinstance(document, dict):
        raise UnsupportedModel(f"{path} must hold a JSON object")
    return document


def _read_bounded(path: Path) -> bytes:
    """Return a config's bytes. Raises `UnsupportedModel` for GGUF weights or a too large file."""
    with path.open("rb") as file:
        start = file.read(4)
        if start == b"GGUF":
            raise UnsupportedModel(f"{path} is {_GGUF}")
        data = start + file.read(_JSON_LIMIT)
    if len(data) > _JSON_LIMIT:
        raise UnsupportedModel(
            f"{path} is not a config.json: it is larger than {_JSON_LIMIT:,} bytes"
        )
    return data


def _refuse_impossible(path: Path, config: Mapping[str, Any]) -> None:
    """Raise `UnsupportedModel`, naming the field, for values that no engine could load."""
    for name in (*_COUNTED, *_OPTIONAL, *_FROM_ZERO):
        value, least = config.get(name), 0 if name in _FROM_ZERO else 1
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            needed = "above 0" if least else "from 0 on"
            words = f"{name} is {value!r}; a whole number {needed} is needed"
            raise UnsupportedModel(f"{path}: {words}")
    heads, hidden = (config.get(name) for name in ("num_attention_heads", "hidden_size"))
    kv_heads = config.get("num_key_value_heads")
    if heads and kv_heads and heads % kv_heads:
        words = f"{kv_heads} do not divide the {heads} of num_attention_heads"
        raise UnsupportedModel(f"{path}: num_key_value_heads: {words}")
    if heads and hidden and not config.get("head_dim") and hidden % heads:
        words = f"{heads} do not divide the hidden_size of {hidden}"
        raise UnsupportedModel(f"{path}: num_attention_heads: {words}, and there is no head_dim")
    dtype = config.get("torch_dtype") or config.get("dtype")
    if dtype is not None and dtype not in _DTYPE_BYTES:
        known = ", ".join(_DTYPE_BYTES)
        raise UnsupportedModel(f"{path}: torch_dtype is {dtype!r}; known are {known}")
    quantization = config.get("quantization_config")
    if quantization is not None and not isinstance(quantization, Mapping):
        words = "an object with a quant_method is needed"
        raise UnsupportedModel(f"{path}: quantization_config is {quantization!r}; {words}")
    _refuse_quantization(path, quantization or {})


def _refuse_quantization(path: Path, quantization: Mapping[str, Any]) -> None:
    method, bits = quantization.get("quant_method"), quantization.get("bits")
    if method and method not in _METHODS:
        words = f"quant_method is {method!r}; known are {', '.join(_METHODS)}"
        raise UnsupportedModel(f"{path}: quantization_config.{words}")
    if method in _BY_BITS and bits is not None and bits not in range(1, 17):
        words = f"bits is {bits!r}; a whole number from 1 to 16 is needed"
        raise UnsupportedModel(f"{path}: quantization_config.{words}")
    groups = quantization.get("config_groups") or {}
    if not isinstance(groups, Mapping) or not all(map(_is_group, groups.values())):
        words = "config_groups: each group is an object, its `weights` one with num_bits from 1 on"
        raise UnsupportedModel(f"{path}: quantization_config.{words}")


def _is_group(group: Any) -> bool:
    stored = group.get("weights") or {} if isinstance(group, Mapping) else None
    return isinstance(stored, Mapping) and (stored.get("num_bits") or 16) in range(1, 33)


def _experts(path: Path, config: Mapping[str, Any]) -> tuple[int, int]:
    """Return the experts in each layer and those used by one token; 0 for a dense model."""
    experts = int(config.get("num_local_experts") or config.get("num_experts") or 0)
    if not experts:
        return 0, 0
    used = int(config["num_experts_per_tok"])
    if not 1 <= used <= experts:
        words = f"num_experts_per_tok is {used}; of {experts} experts 1 to {experts} can be used"
        raise UnsupportedModel(f"{path}: {words}")
    return experts, used


def _model(path: Path, config: Mapping[str, Any], weights: Weights) -> ModelConfig:
    hidden, layers, heads = (
        int(config[key]) for key in ("hidden_size", "num_hidden_layers", "num_attention_heads")
    )
    kv_heads = int(config.get("num_key_value_heads") or heads)
    head_dim = int(config.get("head_dim") or hidden // heads)
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    experts, used = _experts(path, config)
    inner = int(config.get("moe_intermediate_size") or config["intermediate_size"])
    shared = int(config.get("shared_expert_intermediate_size") or 0)
    number = 3 * hidden * inner
    always = attention + 3 * hidden * shared + experts * hidden
    linear = layers * (always + (experts * number if experts else number))
    active = layers * (always + (used * number if experts else number))
    vocabulary = int(config["vocab_size"])
    tables = vocabulary * hidden * (1 if config.get("tie_word_embeddings") else 2)
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16")
    return ModelConfig(
        name=path.resolve().parent.name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=inner * max(used, 1) + shared,
        vocabulary=vocabulary,
        context_tokens=int(config.get("max_position_embeddings") or 0),
        dtype_bytes=_DTYPE_BYTES.get(dtype, 2),
        linear_parameters=linear,
        active_linear_parameters=active,
        table_parameters=tables,
        weights=weights,
        stored_bytes=safetensors_bytes(path.parent),
        experts=experts,
        experts_used=used,
    )


def _quantization(config: Mapping[str, Any]) -> Weights:
    quantization = config.get("quantization_config") or {}
    method = str(quantization.get("quant_method") or "none")
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16")
    if method == "fp8":
        return Weights(method, 8.0, "fp8")
    if method in _BY_BITS:
        bits, group = float(quantization["bits"]), float(quantization.get("group_size") or -1)
        # A 16-bit scale per group; asymmetric kernels unpack the zero points to 16 bits as well.
        asymmetric = bool(quantization.get("zero_point", not quantization.get("sym", True)))
        extra = (32.0 if asymmetric else 16.0) / group if group > 0 else 0.0
        return Weights(method, bits + extra, "bf16")
    if method == "compressed-tensors":
        groups = quantization.get("config_groups") or {}
        first: Mapping[str, Any] = next(iter(groups.values()), {})
        stored: Mapping[str, Any] = first.get("weights") or {}
        bits, group = float(stored.get("num_bits") or 16), float(stored.get("group_size") or -1)
        extra = 16.0 / group if group > 0 else 0.0
        compute: Number = "bf16"
        if bits == 8 and first.get("input_activations") is not None:
            compute = "fp8" if stored.get("type") == "float" else "int8"
        return Weights(method, bits + extra, compute)
    return Weights("none", 8.0 * _DTYPE_BYTES.get(dtype, 2), "bf16")


def safetensors_bytes(directory: Path) -> int | None:
    """Return the bytes of all tensors, or `None` without weight files and without an index.

    Files that the index does not name are ignored, as vLLM does. If a named file is missing, for
    example before the download, the total in the index is returned. Raises `UnsupportedModel` for a
    damaged file.
    """
    named, total = _read_index(directory)
    paths = [directory / name for name in named] or _weight_files(directory)
    if not all(path.is_file() for path in paths):
        return total
    return sum(map(_tensor_bytes, paths)) or total


def _weight_files(directory: Path) -> list[Path]:
    found = sorted(directory.glob("*.safetensors"))
    return [path for path in found if not path.name.startswith(_SECOND_COPY)] or found


def _read_index(directory: Path) -> tuple[list[str], int | None]:
    """Return the file names of an index and its total bytes; ([], None) without an index."""
    path = directory / _INDEX
    if not path.is_file():
        return [], None
    try:
        document = json.loads(_read_bounded(path).decode("utf-8"))
        names = sorted({str(name) for name in document["weight_map"].values()})
        total = (document.get("metadata") or {}).get("total_size")
        return names, None if total is None else int(total)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise UnsupportedModel(f"{path} is not an index of safetensors files") from error


def _tensor_bytes(path: Path) -> int:
    """Return the bytes of a file's tensors: the end of the last one in the header."""
    try:
        return max((tensor.end for tensor in tensors(path).values()), default=0)
    except NoTensors as error:
        raise UnsupportedModel(str(error)) from error
