"""LoRA folders: what vLLM is told about them, and what is no adapter."""

import json
from pathlib import Path

import pytest

from backends.engine.adapters import BadAdapter, flags, rank_of


def adapter(folder: Path, **changes: object) -> Path:
    folder.mkdir()
    config = {"peft_type": "LORA", "r": 8, **changes}
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


def test_a_batch_has_room_for_eight_of_many(tmp_path: Path):
    one = adapter(tmp_path / "a")
    made = flags({f"a{number}": one for number in range(20)})
    assert made[1:5] == ("--max-loras", "8", "--max-cpu-loras", "20")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"peft_type": "IA3"}, "peft_type is 'IA3'; only LORA"),
        ({"r": 1024}, "r is 1024; a rank of 1 to 512"),
        ({"r": "8"}, "r is '8'; a rank"),
        ({"r": True}, "r is True; a rank"),
        ({"use_dora": True}, "use_dora is on"),
    ],
)
def test_what_cannot_be_served_is_told_by_its_field(tmp_path: Path, changes, said: str):
    with pytest.raises(BadAdapter, match=said):
        rank_of(adapter(tmp_path / "a", **changes))


def test_folders_that_are_no_adapters(tmp_path: Path):
    with pytest.raises(BadAdapter, match="there is no directory"):
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
