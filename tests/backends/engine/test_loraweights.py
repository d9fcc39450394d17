"""What an adapter's weights must be for an engine to load them and to say sense with them."""

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from backends.engine.loraweights import BadWeights, check

LAYER = "model.layers.0.self_attn.v_proj"
A, B = f"base_model.model.{LAYER}.lora_A.weight", f"base_model.model.{LAYER}.lora_B.weight"
PAIR = {A: [2, 10], B: [6, 2]}
CONFIG = {"r": 2}
PACKED = {"F64": "d", "F32": "f", "F16": "e"}


def packed(value: float, dtype: str) -> bytes:
    if dtype == "BF16":
        return struct.pack("<f", value)[2:]
    return struct.pack(f"<{PACKED.get(dtype, 'B')}", value if dtype in PACKED else 1)


def write(
    file: Path, shapes: Mapping[str, list[int]], dtype: str = "F32", last: float = 0.5
) -> Path:
    header, data = {}, b""
    for name, shape in shapes.items():
        count = math.prod(shape)
        more = packed(0.5, dtype) * (count - 1) + packed(last, dtype)
        offsets = [len(data), len(data) + len(more)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += more
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return file


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    shapes = {f"{LAYER}.weight": [6, 10], "model.layers.0.mlp.up_proj.weight": [4, 10]}
    write(tmp_path / "model" / "model.safetensors", shapes)
    write(tmp_path / "model" / "consolidated.safetensors", {"layers.0.wq.weight": [1, 1]})
    return tmp_path / "model"


@pytest.mark.parametrize("dtype", ["F64", "F32", "BF16", "F16", "F8_E4M3"])
def test_numbers_of_every_kind_are_taken(tmp_path: Path, model: Path, dtype: str) -> None:
    check(write(tmp_path / "a", PAIR, dtype), CONFIG, model)
    check(write(tmp_path / "a", PAIR, dtype, last=-6e4), CONFIG, model)


@pytest.mark.parametrize("dtype", ["F64", "F32", "BF16", "F16"])
@pytest.mark.parametrize("value", [math.nan, -math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_told(
    tmp_path: Path, model: Path, dtype: str, value: float
) -> None:
    with pytest.raises(BadWeights, match=rf"`{A}` has values that are NaN"):
        check(write(tmp_path / "a", PAIR, dtype, last=value), CONFIG, model)


@pytest.mark.parametrize("dtype", ["I8", "U8", "BOOL"])
def test_whole_numbers_are_no_factors(tmp_path: Path, model: Path, dtype: str) -> None:
    with pytest.raises(
        BadWeights, match=f"`{A}` has the type {dtype}, which LoRA weights cannot have"
    ):
        check(write(tmp_path / "a", PAIR, dtype), CONFIG, model)


@pytest.mark.parametrize(
    ("shapes", "config", "said"),
    [
        ({}, {}, "no module has lora_A and lora_B"),
        ({A: [2, 10]}, {}, f"{LAYER} has lora_A.weight but no lora_B.weight"),
        ({B: [6, 2]}, {}, f"{LAYER} has lora_B.weight but no lora_A.weight"),
        ({A: [2, 10], B: [6, 3]}, {}, "has factors of rank 2 and 3, where its .* says 2"),
        (PAIR, {"r": 8}, "has factors of rank 2 and 2, where its configuration says 8"),
        (PAIR, {"rank_pattern": {"v_proj": 4}}, "where its configuration says 4"),
        (
            PAIR,
            {"rank_pattern": {"(": 4}},
            r"rank_pattern has the invalid pattern '\('",
        ),
        (PAIR | {f"{LAYER}.weight": [6, 10]}, {}, f"the weight `{LAYER}.weight`, which vLLM"),
        (PAIR | {A.replace("weight", "default.weight"): [2, 10]}, {}, "lora_A.default.weight`"),
    ],
)
def test_factors_that_do_not_go_together_are_told(
    tmp_path: Path, model: Path, shapes, config, said
) -> None:
    with pytest.raises(BadWeights, match=said):
        check(write(tmp_path / "a", shapes), CONFIG | config, model)


def test_modules_that_the_model_has_not_are_told(tmp_path: Path, model: Path) -> None:
    def named(module: str) -> Path:
        names = (f"base_model.model.{module}.lora_{side}.weight" for side in "AB")
        return write(tmp_path / "a", dict(zip(names, PAIR.values(), strict=True)))

    for other in ("transformer.h.0.attn.c_attn", "layers.0.wq"):
        with pytest.raises(BadWeights, match=f"model`, which has no {other[-2:]}|c_attn"):
            check(named(other), CONFIG, model)
    for module in (
        "lm_head",
        "language_model.layers.7.mlp.up_proj",
        "model.layers.0.mlp.experts.0.w1",
    ):
        check(named(module), CONFIG, model)
    (model / "model.safetensors").unlink()  # nothing is known of such a model
    check(named("transformer.h.0.attn.c_attn"), CONFIG, model)


def test_an_adapter_of_a_deeper_model_is_told(tmp_path: Path, model: Path) -> None:
    """vLLM leaves out what it has no layer for, and answers as the model alone does."""
    deep = {name.replace(".0.", ".99."): shape for name, shape in PAIR.items()}
    with pytest.raises(BadWeights, match=r"which has no model\.layers\.99\.self_attn\.v_proj"):
        check(write(tmp_path / "a", PAIR | deep), CONFIG, model)


def test_what_vllm_takes_beside_factors_is_taken(tmp_path: Path, model: Path) -> None:
    more = {
        "base_model.model.score.weight": [2, 10],
        "base_model.model.model.embed_tokens.base_layer.weight": [3, 10],
        "base_model.model.model.embed_tokens.lora_embedding_A": [2, 3],
        "base_model.model.model.embed_tokens.lora_embedding_B": [10, 2],
    }
    check(write(tmp_path / "a", PAIR | more), CONFIG, model)
    layer = {"rank_pattern": {r"layers\.0\..*": 2}, "r": 64}
    check(write(tmp_path / "a", PAIR), layer, model)
