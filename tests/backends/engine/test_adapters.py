"""LoRA folders: what vLLM is told about them, and what is no adapter."""

import json
import math
from pathlib import Path

import pytest

from backends.engine.adapters import (
    BadAdapter,
    check_fits,
    find_refused,
    flags,
    rank_of,
    split_fitting,
)


def adapter(folder: Path, **changes: object) -> Path:
    folder.mkdir()
    config = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": "all-linear"}
    config |= changes
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").touch()
    return folder


def test_the_room_fits_the_largest_rank(tmp_path: Path):
    small, large = adapter(tmp_path / "a"), adapter(tmp_path / "b", r=20)
    made = flags({"sql": small, "law": large})
    assert made == (
        "--enable-lora", "--max-loras", "2", "--max-cpu-loras", "2", "--max-lora-rank", "32",
        "--lora-modules", f"sql={small}", f"law={large}",
    )  # fmt: skip
    assert flags({}) == ()


def test_the_room_fits_a_layer_that_has_a_rank_of_its_own(tmp_path: Path):
    this_adapter = adapter(tmp_path / "a", rank_pattern={"q_proj": 64})
    assert flags({"sql": this_adapter})[5:7] == ("--max-lora-rank", "64")


def test_a_batch_has_room_for_eight_of_many(tmp_path: Path):
    this_adapter = adapter(tmp_path / "a")
    made = flags({f"a{number}": this_adapter for number in range(20)})
    assert made[1:5] == ("--max-loras", "8", "--max-cpu-loras", "20")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"peft_type": "IA3"}, "peft_type is 'IA3'; only LORA"),
        ({"r": 1024}, "r is 1024; a rank of 1 to 512"),
        ({"r": "8"}, "r is '8'; a rank"),
        ({"r": True}, "r is True; a rank"),
        ({"use_dora": True}, "use_dora is on"),
        ({"layer_replication": [[0, 2]]}, "layer_replication is on"),
        ({"bias": "all"}, "bias is on"),
        ({"lora_alpha": None}, "lora_alpha is None; a number"),
        ({"lora_alpha": math.nan}, "lora_alpha is nan; a number"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save has 'lm_head', which vLLM does not"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights is 'pissa', which changed the model's"),
        ({"rank_pattern": {"q_proj": 600}}, "q_proj is 600; a rank of 1 to 512"),
        ({"rank_pattern": [16]}, r"rank_pattern is \[16\]; a rank"),
    ],
)
def test_what_cannot_be_served_is_told_by_its_field(tmp_path: Path, changes, said: str):
    with pytest.raises(BadAdapter, match=said):
        rank_of(adapter(tmp_path / "a", **changes))


@pytest.mark.parametrize("field", ["lora_alpha", "target_modules"])
def test_what_vllm_needs_and_is_missing_is_told(tmp_path: Path, field: str):
    folder = adapter(tmp_path / "a")
    config = json.loads((folder / "adapter_config.json").read_text())
    del config[field]
    (folder / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(BadAdapter, match=f"it has no {field}, which vLLM needs"):
        rank_of(folder)


def test_what_is_usual_in_a_configuration_is_taken(tmp_path: Path):
    usual = {"init_lora_weights": "gaussian", "modules_to_save": None, "lora_alpha": 0.5,
             "target_modules": r".*\.(q|v)_proj", "bias": "none", "rank_pattern": {}}  # fmt: skip
    assert rank_of(adapter(tmp_path / "a", **usual)) == 8
    assert rank_of(adapter(tmp_path / "b", modules_to_save=["score"])) == 8


def test_a_folder_with_a_comma_in_its_name_is_told_in_the_form_that_has_room_for_it(tmp_path: Path):
    this_adapter = adapter(tmp_path / "sql, v2")
    *_, words = flags({"sql": this_adapter})
    assert json.loads(words) == {"name": "sql", "path": str(this_adapter)}


def test_folders_that_are_no_adapters(tmp_path: Path):
    with pytest.raises(BadAdapter, match=r"the directory .* does not exist"):
        rank_of(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadAdapter, match=r"it has no adapter_config\.json"):
        rank_of(tmp_path / "empty")
    (tmp_path / "empty" / "adapter_config.json").write_text("[1]")
    with pytest.raises(BadAdapter, match="cannot be read"):
        rank_of(tmp_path / "empty")
    (adapter(tmp_path / "a") / "adapter_model.safetensors").unlink()
    with pytest.raises(BadAdapter, match=r"has no weights: adapter_model\.safetensors or"):
        rank_of(tmp_path / "a")


LAYER = "model.layers.0.self_attn.v_proj"


def tensors(file: Path, shapes: dict[str, list[int]]) -> Path:
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))
    return file


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    tensors(tmp_path / "model" / "model.safetensors", {f"{LAYER}.weight": [6, 10]})
    return tmp_path / "model"


def of(folder: Path, inputs: int, outputs: int) -> Path:
    within = f"base_model.model.{LAYER}"
    shapes = {
        f"{within}.lora_A.weight": [8, inputs], f"{within}.lora_B.weight": [outputs, 8],
        "base_model.model.model.embed_tokens.lora_embedding_A": [8, 3],
        "base_model.model.model.embed_tokens.lora_embedding_B": [10, 8],
    }  # fmt: skip
    tensors(adapter(folder) / "adapter_model.safetensors", shapes)
    return folder


def test_an_adapter_is_for_the_model_whose_shapes_it_has(tmp_path: Path, model: Path):
    check_fits(of(tmp_path / "fits", 10, 6), model)
    others = (("wide", 12, 6, "A.weight of the adapter has 12"),
              ("tall", 10, 7, "B.weight of the adapter has 7"))  # fmt: skip
    for name, inputs, outputs, said in others:
        words = rf"is not for the model .*: {LAYER} is 6 x 10 there, and {said}"
        with pytest.raises(BadAdapter, match=words):
            check_fits(of(tmp_path / name, inputs, outputs), model)


def test_an_adapter_that_was_cut_short_or_never_fetched_is_told(tmp_path: Path, model: Path):
    file = of(tmp_path / "a", 10, 6) / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(BadAdapter, match=r"was cut short: it has [\d,]+ of [\d,]+ bytes; copy"):
        check_fits(tmp_path / "a", model)
    file.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(BadAdapter, match="is not a safetensors file"):
        check_fits(tmp_path / "a", model)


def test_without_a_model_the_weights_are_looked_at_all_the_same(tmp_path: Path):
    check_fits(of(tmp_path / "a", 12, 7), None)
    with pytest.raises(BadAdapter, match="is not a safetensors file"):
        check_fits(adapter(tmp_path / "b"), None)


def test_what_only_an_engine_can_read_is_left_to_it(tmp_path: Path, model: Path):
    folder = adapter(tmp_path / "a")
    (folder / "adapter_model.safetensors").unlink()
    file = folder / "adapter_model.bin"
    file.write_bytes(b"\x80\x02}q\x00.")  # of a torch before archives
    check_fits(folder, model)
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(BadAdapter, match=r"was cut short, or is not a file of torch\.save: copy"):
        check_fits(folder, model)


def test_those_that_fit_are_kept_and_of_the_others_is_told_why(tmp_path: Path, model: Path):
    good, bad = of(tmp_path / "good", 10, 6), of(tmp_path / "bad", 12, 6)
    kept, told = split_fitting({"a": good, "b": bad, "c": tmp_path / "gone"}, model)
    assert kept == {"a": good}
    assert list(told) == ["b", "c"]
    assert "is not for the model" in told["b"]
    assert "does not exist" in told["c"]


def test_the_first_that_was_not_said_to_be_loaded_is_the_one_that_ended_a_start():
    trace = "  File serving.py, in init_static_loras\nValueError: no\n"
    loaded = "Loaded new LoRA adapter: name 'a', path '/a'\n"
    assert find_refused(loaded + trace, ("a", "b", "c")) == "b"
    assert find_refused(trace, ("a", "b")) == "a"
    assert find_refused(loaded + "MemoryError\n", ("a", "b")) is None
    assert find_refused(trace, ()) is None
