"""A model's arithmetic from its `config.json`: parameters, bytes, KV bytes per token.

Reads decoder-only transformers of the Llama family (Llama, Mistral, Qwen 2 and 3, Mixtral and
Qwen mixtures of experts) and their usual quantizations. Weights are summed from the safetensors
headers when the files are there, else computed from the shapes.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.engine.catalog import Number

_DTYPE_BYTES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2}
_FAMILIES = frozenset(
    ("llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen2_moe", "qwen3_moe", "ministral")
)
_BY_BITS = ("awq", "gptq")
_METHODS = (*_BY_BITS, "fp8", "compressed-tensors", "none")
_HEADER_LIMIT = 100_000_000  # the safetensors format's own limit


class UnsupportedModel(ValueError):
    """The directory holds no model of a family whose arithmetic is known."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How linear layers are stored: bits per weight with its scales and zero points."""

    method: str  # "none", "awq", "gptq", "fp8", "compressed-tensors"
    bits: float
    compute: Number  # the number format that products run in


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

    @property
    def parameters(self) -> int:
        return self.linear_parameters + self.table_parameters

    @property
    def active_parameters(self) -> int:
        """What one token is multiplied with; fewer than all in a mixture of experts."""
        return self.active_linear_parameters + self.table_parameters

    @property
    def weight_bytes(self) -> int:
        return self.stored_bytes or self._bytes(self.linear_parameters)

    @property
    def active_weight_bytes(self) -> int:
        """What one decode step of one sequence reads."""
        idle = self.linear_parameters - self.active_linear_parameters
        return self.weight_bytes - int(idle * self.weights.bits / 8)

    def _bytes(self, linear: int) -> int:
        return int(linear * self.weights.bits / 8) + self.table_parameters * self.dtype_bytes

    def kv_bytes_per_token(self, *, element_bytes: int | None = None) -> int:
        return 2 * self.layers * self.kv_heads * self.head_dim * (element_bytes or self.dtype_bytes)


def read_model(directory: Path) -> ModelConfig:
    """Read a model directory (or a `config.json`); raises `UnsupportedModel`."""
    path = directory / "config.json" if directory.is_dir() else directory
    document = _document(directory, path)
    config: dict[str, Any] = {**document, **(document.get("text_config") or {})}
    family = config.get("model_type")
    if family not in _FAMILIES:
        known = f"known are {', '.join(sorted(_FAMILIES))}"
        if family is None:
            raise UnsupportedModel(f"{path} is no model's: it has no `model_type`; {known}")
        raise UnsupportedModel(f"{path}: models of the type `{family}` cannot be planned; {known}")
    try:
        _refuse_impossible(path, config)
        return _model(path, config, _quantization(config))
    except KeyError as error:
        raise UnsupportedModel(f"{path}: {error.args[0]} is missing") from error
    except UnsupportedModel:
        raise
    except (ArithmeticError, TypeError, ValueError) as error:
        raise UnsupportedModel(f"{path}: these are not a model's numbers: {error}") from error


_COUNTED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_OPTIONAL = ("num_key_value_heads", "head_dim", "intermediate_size", "moe_intermediate_size")


def _document(directory: Path, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        words = "no model: it has no config.json" if directory.is_dir() else "not there"
        raise UnsupportedModel(f"{directory} is {words}") from error
    except OSError as error:
        raise UnsupportedModel(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UnsupportedModel(f"{path} is not JSON: {error}") from error
    except RecursionError as error:
        raise UnsupportedModel(f"{path} is not JSON: it is nested too deep") from error
    if not isinstance(document, dict):
        raise UnsupportedModel(f"{path} is no model's: it holds no JSON object")
    return document


def _refuse_impossible(path: Path, config: Mapping[str, Any]) -> None:
    """Numbers that no engine could load, by the name of the field and what it may be."""
    for name in (*_COUNTED, *_OPTIONAL):
        value = config.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            words = f"{name} is {value!r}; a whole number above 0 is needed"
            raise UnsupportedModel(f"{path}: these are not a model's numbers: {words}")
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


def _model(path: Path, config: Mapping[str, Any], weights: Weights) -> ModelConfig:
    hidden, layers, heads = (
        int(config[key]) for key in ("hidden_size", "num_hidden_layers", "num_attention_heads")
    )
    kv_heads = int(config.get("num_key_value_heads") or heads)
    head_dim = int(config.get("head_dim") or hidden // heads)
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    experts = int(config.get("num_local_experts") or config.get("num_experts") or 0)
    used = int(config.get("num_experts_per_tok") or 0) if experts else 0
    inner = int(config.get("moe_intermediate_size") or config["intermediate_size"])
    shared = int(config.get("shared_expert_intermediate_size") or 0)
    one = 3 * hidden * inner
    always = attention + 3 * hidden * shared + experts * hidden
    linear = layers * (always + (experts * one if experts else one))
    active = layers * (always + (used * one if experts else one))
    vocabulary = int(config["vocab_size"])
    tables = vocabulary * hidden * (1 if config.get("tie_word_embeddings") else 2)
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16")
    return ModelConfig(
        name=path.parent.name,
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
    """Bytes of all tensors, from the files' headers; `None` when there are no such files."""
    total = 0
    for path in sorted(directory.glob("*.safetensors")):
        try:
            header = _header(path)
        except (ValueError, struct.error) as error:
            raise UnsupportedModel(f"{path} is not a safetensors file") from error
        total += max(
            (tensor["data_offsets"][1] for name, tensor in header.items() if name[0] != "_"),
            default=0,
        )
    return total or None


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        if length > _HEADER_LIMIT:
            raise ValueError(length)
        header: dict[str, Any] = json.loads(file.read(length))
        return header
