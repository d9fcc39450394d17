"""Headers of safetensors files, and what is none."""

import json
from pathlib import Path

import pytest

from backends.engine.safetensors import NoTensors, Tensor, data_start, tensors


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
    assert tensors(file, whole=True) == {
        "a": Tensor((2, 3), "U8", 0, 6), "_b": Tensor((), "U8", 6, 7),
    }  # fmt: skip
    file.write_bytes(file.read_bytes()[:-1])
    assert tensors(file)["_b"].end == 7
    with pytest.raises(NoTensors, match=r"f was cut short: it has 1\d\d of 1\d\d bytes; copy it"):
        tensors(file, whole=True)


@pytest.mark.parametrize(
    "header", [[], {"a": 1}, {"a": {"shape": [1]}},
               {"a": {"dtype": "U8", "shape": 1, "data_offsets": [0, 1]}},
               {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0]}},
               {"a": {"shape": [1], "data_offsets": [0, 1]}}],
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


def one(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    ("header", "size", "said"),
    [
        ({"a": one("F32", [2], 0, 4)}, 4, "its header is wrong: a is 2 of F32, .* to 4"),
        ({"a": one("F32", [1], 4, 8)}, 8, "a is 1 of F32, .* said to be 4 to 8"),
        ({"a": one("U8", [4], 0, 4), "b": one("U8", [4], 2, 6)}, 6, "b is 4 of U8"),
        ({"a": one("U8", [-1, -4], 0, 4)}, 4, "a is -1 x -4 of U8"),
        ({"a": one("X9", [1], 0, 1)}, 1, "a is of an unknown type, X9"),
        ({"a": one("U8", [1], 0, 1)}, 3, "has 2 bytes that its header does not describe"),
    ],
)
def test_a_header_that_lies_is_told(tmp_path: Path, header: object, size: int, said: str):
    file = write(tmp_path / "f", header, bytes(size))
    tensors(file)
    with pytest.raises(NoTensors, match=said):
        tensors(file, whole=True)


def test_the_bytes_begin_after_the_header(tmp_path: Path):
    file = write(tmp_path / "f", {"a": one("U8", [3], 0, 3)}, b"xyz")
    assert file.read_bytes()[data_start(file) :] == b"xyz"
