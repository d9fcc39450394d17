"""Checks of a LoRA adapter's weights: names, ranks, shapes and finite numbers.

vLLM checks the first three only at its start, where one adapter that it cannot load ends the start
for all. It serves adapters with NaN. So all are checked here, by the rules of vLLM and peft.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from backends.engine import torchfile
from backends.engine.safetensors import NoTensors, Tensor, data_start, tensors

WITHIN = "base_model.model."  # prefix of the module's name in the model
_FACTOR = re.compile(r"(.+)\.(lora_[AB]\.weight|lora_embedding_[AB])")
_HEAD = re.compile(r"(?:.+\.)?(?:score|classifier)\.(?:weight|bias)")  # a classifier, full weights
_BASE = (".embed_tokens.base_layer.weight", ".lm_head.base_layer.weight")  # ignored by vLLM
_ENDS = ("lm_head", "embed_tokens")  # a model with tied weights stores one or none
_SECOND_COPY = "consolidated"  # Mistral's own copy of the weights, with other names
_NUMBER = re.compile(r"\.\d+\.")  # layer number
_FLOATS = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")
# By type: bytes of a number, values of its last byte, and least value of the byte before it, in
# NaN and infinite numbers.
_NOT_FINITE = {
    "F64": (8, rb"[\x7f\xff]", 0xF0), "F32": (4, rb"[\x7f\xff]", 0x80),
    "BF16": (2, rb"[\x7f\xff]", 0x80), "F16": (2, rb"[\x7c-\x7f\xfc-\xff]", 0),
}  # fmt: skip


class BadWeights(Exception):
    """No engine could load the weights, or they are not an adapter of this model."""


class _Factor(NamedTuple):
    module: str  # name in the model
    side: str  # of `lora_A.weight`, `lora_B.weight`, `lora_embedding_A`, `lora_embedding_B`
    tensor: Tensor

    @property
    def is_first(self) -> bool:
        return "_A" in self.side


def check(file: Path, config: Mapping[str, Any], model: Path | None) -> None:
    """Check an adapter's weights. Raises `BadWeights` when an engine could not serve them.

    `config` is its adapter_config.json, `model` the model that it is for, if known.
    """
    try:
        if file.suffix == torchfile.SUFFIX and torchfile.is_old(file):
            return  # old torch format, which only an engine can read
        mine = _read_tensors(file)
        factors = _factors({name: item.tensor for name, item in mine.items()})
        _pairs(factors, config)
        if model is not None and (its := _of_model(model)) is not None:
            for factor in factors:
                _fits(factor, its)
        for name, (tensor, pieces) in mine.items():
            if any(_has_none(piece, tensor.dtype) for piece in pieces):
                raise BadWeights(f"`{name}` has values that are NaN or infinite")
    except (NoTensors, OSError) as error:
        raise BadWeights(str(error)) from error


class _HeldTensor(NamedTuple):
    tensor: Tensor
    pieces: Iterator[bytes]  # its numbers in pieces


def _read_tensors(file: Path) -> Mapping[str, _HeldTensor]:
    if file.suffix == torchfile.SUFFIX:
        found = torchfile.tensors(file)
        return {
            n: _HeldTensor(finding.tensor, torchfile.pieces(file, finding.member))
            for n, finding in found.items()
        }
    header = tensors(file, whole=True)
    return {name: _HeldTensor(tensor, _pieces(file, tensor)) for name, tensor in header.items()}


class _Model(NamedTuple):
    path: Path
    weights: Mapping[str, Tensor]
    modules: frozenset[str]
    kinds: frozenset[str]  # last parts of the modules' names
    alike: frozenset[str]  # modules' names without layer numbers


def _of_model(path: Path) -> _Model | None:
    """Return the modules and tensors of a model, or `None` if it has no safetensors."""
    weights: dict[str, Tensor] = {}
    for file in path.glob("*.safetensors"):
        if not file.name.startswith(_SECOND_COPY):
            weights |= tensors(file)
    modules = frozenset(name.rpartition(".")[0] for name in weights)
    kinds = frozenset(word for name in weights for word in name.split(".")[-3:-1])
    alike = frozenset(_NUMBER.sub(".#.", name) for name in modules)
    return _Model(path, weights, modules, kinds, alike) if weights else None


def _factors(mine: Mapping[str, Tensor]) -> list[_Factor]:
    found = []
    for name, tensor in mine.items():
        if name.endswith(_BASE) or _HEAD.fullmatch(name):
            continue
        if (parts := _FACTOR.fullmatch(name)) is None:
            words = "only lora_A and lora_B of a module are"
            raise BadWeights(f"it has the weight `{name}`, which vLLM does not serve: {words}")
        if tensor.dtype not in _FLOATS:
            raise BadWeights(
                f"`{name}` has the type {tensor.dtype}, which LoRA weights cannot have"
            )
        found.append(_Factor(parts[1].removeprefix(WITHIN), parts[2], tensor))
    if not found:
        raise BadWeights("no module has lora_A and lora_B")
    return found


def _pairs(factors: Sequence[_Factor], config: Mapping[str, Any]) -> None:
    """Check that each module has both factors, of the rank in the configuration."""
    pairs: dict[str, dict[bool, _Factor]] = {}
    for factor in factors:
        pairs.setdefault(factor.module, {})[factor.is_first] = factor
    for module, pair in pairs.items():
        if len(pair) == 1:
            (there,) = pair.values()
            other = there.side.translate(str.maketrans("AB", "BA"))
            raise BadWeights(f"{module} has {there.side} but no {other}")
        first, second = pair[True].tensor.shape, pair[False].tensor.shape
        if len(first) != 2 or len(second) != 2 or ".experts" in module:
            continue
        said = _rank(module, config)
        if not said == first[0] == second[1]:
            words = f"{module} has factors of rank {first[0]} and {second[1]}"
            raise BadWeights(f"{words}, where its configuration says {said}")


def _rank(module: str, config: Mapping[str, Any]) -> Any:
    """Return a module's rank by peft's rule: the first matching pattern, else `r`."""
    for pattern, rank in (config.get("rank_pattern") or {}).items():
        try:
            if re.match(rf"(.*\.)?({pattern})$", module):
                return rank
        except re.error as error:
            raise BadWeights(
                f"rank_pattern has the invalid pattern {pattern!r}: {error}"
            ) from error
    return config.get("r")


def _fits(factor: _Factor, its: _Model) -> None:
    """Check that the model has the factor's module, in a fitting shape."""
    module = factor.module
    weight = its.weights.get(f"{module}.weight")  # quantized models have other names
    if weight is None:
        if missing := _missing_module(module, its):
            raise BadWeights(f"it is not for the model `{its.path}`, which has no {missing}")
        return
    outer = 1 if factor.is_first else 0
    if len(factor.tensor.shape) != 2 or "embedding" in factor.side:
        return
    if (size := factor.tensor.shape[outer]) not in weight.shape:
        there = " x ".join(map(str, weight.shape))
        side = factor.side.removeprefix("lora_")
        words = f"{module} is {there} there, and {side} of the adapter has {size}"
        raise BadWeights(f"it is not for the model `{its.path}`: {words}")


def _missing_module(module: str, its: _Model) -> str:
    """Return the module that the model lacks, or "": its kind, or the one in this layer.

    A layer's module counts as missing only if other layers have it under the same name, since
    models may name the parts before it differently.
    """
    kind = module.rpartition(".")[2]
    if ".experts" in module or kind in _ENDS:
        return ""
    if kind not in its.kinds:
        return kind
    is_other_layer = module not in its.modules and _NUMBER.sub(".#.", module) in its.alike
    return module if is_other_layer else ""


def _pieces(file: Path, tensor: Tensor) -> Iterator[bytes]:
    size = tensor.end - tensor.start
    with file.open("rb") as opened:
        opened.seek(data_start(file) + tensor.start)
        while size > 0 and (piece := opened.read(min(size, torchfile.PIECE_BYTES))):
            size -= len(piece)
            yield piece


def _has_none(piece: bytes, dtype: str) -> bool:
    """Return whether a piece of little-endian numbers has NaN or infinity.

    Bytes are searched by a regular expression: a loop over numbers would take a minute.
    """
    if dtype not in _NOT_FINITE:
        return False
    width, last, before = _NOT_FINITE[dtype]
    found = re.finditer(last, piece[width - 1 :: width])
    return any(piece[place.start() * width + width - 2] >= before for place in found)
