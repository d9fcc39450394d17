"""Header of a safetensors file: names, shapes and positions of its tensors."""

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_HEADER_LIMIT = 100_000_000  # limit of the format
_METADATA = "__metadata__"
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


class NoTensors(ValueError):
    """A file does not have the format of its name, or is incomplete."""


class Tensor(NamedTuple):
    """Entry of the header. `start` and `end` are byte offsets from the end of the header."""

    shape: tuple[int, ...]
    dtype: str
    start: int
    end: int


def tensors(path: Path, *, whole: bool = False) -> Mapping[str, Tensor]:
    """Return the tensors of a file by name.

    With `whole` the file must also hold exactly the bytes that the header describes, one tensor
    directly after the other, as readers of the format require. Raises `OSError` when the file
    cannot be read and `NoTensors` when it is not valid.
    """
    try:
        length, header = _header(path)
        found = {name: _tensor(item) for name, item in header.items() if name != _METADATA}
    except (
        AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error,
    ) as error:  # fmt: skip
        raise NoTensors(f"{path} is not a safetensors file") from error
    if whole:
        _whole(path, 8 + length, found)
    return found


def data_start(path: Path) -> int:
    """Return the offset of the first byte after the header. The header must be valid."""
    with path.open("rb") as file:
        return 8 + int(struct.unpack("<Q", file.read(8))[0])


def _tensor(item: Any) -> Tensor:
    start, end = map(int, item["data_offsets"])
    return Tensor(tuple(map(int, item["shape"])), str(item["dtype"]), start, end)


def _whole(path: Path, head: int, found: Mapping[str, Tensor]) -> None:
    end = 0
    for name, tensor in sorted(found.items(), key=lambda item: item[1].start):
        bits = BITS.get(tensor.dtype)
        if bits is None:
            raise NoTensors(f"{path}: {name} is of an unknown type, {tensor.dtype}")
        size = (math.prod(tensor.shape) * bits + 7) // 8
        if (
            min(tensor.shape, default=0) < 0
            or tensor.start != end
            or tensor.end - tensor.start != size
        ):
            shape = " x ".join(map(str, tensor.shape))
            words = f"is {shape} of {tensor.dtype}, and its bytes are said to be {tensor.start} to"
            raise NoTensors(f"{path}: its header is wrong: {name} {words} {tensor.end}")
        end = tensor.end
    size, wanted = path.stat().st_size, head + end
    if size < wanted:
        raise NoTensors(f"{path} was cut short: it has {size:,} of {wanted:,} bytes; copy it again")
    if size > wanted:
        raise NoTensors(f"{path} has {size - wanted:,} bytes that its header does not describe")


def _header(path: Path) -> tuple[int, Any]:
    with path.open("rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        if length > _HEADER_LIMIT:
            raise ValueError(length)
        return length, json.loads(file.read(length))
