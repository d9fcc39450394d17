"""Headers of safetensors files, and what is none."""

import json
from pathlib import Path

import pytest

from backends.engine.safetensors import NoTensors, Tensor, tensors


def write(file: Path, header: object, data: bytes = b"") -> Path:
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return file


def test_tensors_by_name(tmp_path: Path):
    header = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "U8", "shape": [2, 3], "data_offsets": [0, 6]},
        "_b": {"dtype": "U8", "shape": [], "data_offsets": [6, 7]},
    }
    file = write(tmp_path / "f", header, bytes(7))
    assert tensors(file, whole=True) == {"a": Tensor((2, 3), 6), "_b": Tensor((), 7)}
    file.write_bytes(file.read_bytes()[:-1])
    assert tensors(file)["_b"].end == 7
    with pytest.raises(NoTensors, match=r"f was cut short: it has 1\d\d of 1\d\d bytes; copy it"):
        tensors(file, whole=True)


@pytest.mark.parametrize(
    "header", [[], {"a": 1}, {"a": {"shape": [1]}}, {"a": {"shape": 1, "data_offsets": [0, 1]}},
               {"a": {"shape": [1], "data_offsets": [0]}}],
)  # fmt: skip
def test_other_headers_are_none(tmp_path: Path, header: object):
    with pytest.raises(NoTensors, match="f is not a safetensors file"):
        tensors(write(tmp_path / "f", header))


@pytest.mark.parametrize(
    "content", [b"", b"version https://git-lfs", (1 << 40).to_bytes(8, "little") + b"{}"]
)
def test_other_files_are_none(tmp_path: Path, content: bytes):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(NoTensors, match="f is not a safetensors file"):
        tensors(tmp_path / "f")
