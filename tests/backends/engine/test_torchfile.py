"""Files of `torch.save`, read without torch: what they hold, and what is no plain weights."""

import io
import os
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from backends.engine.safetensors import NoTensors, Tensor
from backends.engine.torchfile import StoredTensor, is_old, pieces, tensors


class Storage(NamedTuple):
    key: str
    numbers: bytes


class SavedTensor(NamedTuple):
    storage: Storage
    offset: int
    shape: tuple[int, ...]


@pytest.fixture
def save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes as torch does; its names are stood in for, as there is no torch here."""
    utils, torch = types.ModuleType("torch._utils"), types.ModuleType("torch")

    def _rebuild_tensor_v2() -> None: ...

    class FloatStorage: ...

    for made, module in ((_rebuild_tensor_v2, utils), (FloatStorage, torch)):
        made.__module__, made.__qualname__ = module.__name__, made.__name__
        setattr(module, made.__name__, made)
        monkeypatch.setitem(sys.modules, module.__name__, module)

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: object) -> object:
            if isinstance(item, Storage):
                return "storage", FloatStorage, item.key, "cpu", len(item.numbers) // 4
            return None

        def reducer_override(self, item: object) -> object:
            if isinstance(item, SavedTensor):
                said = (item.storage, item.offset, item.shape, (1,), False, OrderedDict())
                return _rebuild_tensor_v2, said
            return NotImplemented

    def write(found: object, members: dict[str, bytes]) -> Path:
        text = io.BytesIO()
        Pickler(text, protocol=2).dump(found)
        with zipfile.ZipFile(tmp_path / "f.bin", "w") as archive:
            archive.writestr("f/data.pkl", text.getvalue())
            for key, numbers in members.items():
                archive.writestr(f"f/data/{key}", numbers)
        return tmp_path / "f.bin"

    return write


NUMBERS = bytes(range(24))
ONE = SavedTensor(Storage("0", NUMBERS), 2, (2, 2))


def test_tensors_by_name_with_the_place_of_their_numbers(save) -> None:
    file = save(OrderedDict(a=ONE), {"0": NUMBERS})
    assert tensors(file) == {"a": StoredTensor(Tensor((2, 2), "F32", 8, 24), "f/data/0")}
    assert b"".join(pieces(file, "f/data/0")) == NUMBERS
    assert not is_old(file)


@pytest.mark.parametrize(
    ("found", "members", "said"),
    [
        ({"a": ONE}, {}, "numbers of a are missing"),
        ({"a": ONE}, {"0": NUMBERS[:20]}, "numbers of a are missing"),
        ([ONE], {"0": NUMBERS}, "has no named weights"),
        ({"a": 1}, {}, "holds 'a', which is not a tensor"),
        ({1: ONE}, {"0": NUMBERS}, "holds 1, which is not a tensor"),
        ({"a": os.system}, {}, r"holds more than plain weights: it loads \w+\.system"),
        ({"a": Path}, {}, "it loads pathlib"),
    ],
)
def test_what_is_no_plain_weights_is_told_and_not_run(save, found, members, said) -> None:
    with pytest.raises(NoTensors, match=said):
        tensors(save(found, members))


def test_other_files_are_none(save, tmp_path: Path) -> None:
    whole = save({"a": ONE}, {"0": NUMBERS}).read_bytes()
    for content in (whole[:-30], b"version https://git-lfs", b""):
        (tmp_path / "g").write_bytes(content)
        with pytest.raises(NoTensors, match=r"cut short, or is not a file of torch\.save: copy"):
            tensors(tmp_path / "g")
    with zipfile.ZipFile(tmp_path / "h", "w") as archive:
        archive.writestr("readme", "")
    with pytest.raises(NoTensors, match=r"h is not a file of torch\.save"):
        tensors(tmp_path / "h")


def test_numbers_that_were_damaged_are_told(save) -> None:
    file = save({"a": ONE}, {"0": NUMBERS})
    file.write_bytes(file.read_bytes().replace(NUMBERS, NUMBERS[::-1]))
    with pytest.raises(NoTensors, match=r"is damaged: .*CRC"):
        list(pieces(file, "f/data/0"))


def test_files_of_a_torch_before_archives_are_told_by_their_beginning(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x80\x02}q\x00.")
    assert is_old(tmp_path / "f")
