"""The header of a safetensors file: which tensors are in it, of which shape, and where they end."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_HEADER_LIMIT = 100_000_000  # the format's own
_METADATA = "__metadata__"


class NoTensors(ValueError):
    """The file is not what its name says, or not all of it is there."""


class Tensor(NamedTuple):
    """`end`: of its bytes, counted from the end of the header."""

    shape: tuple[int, ...]
    end: int


def tensors(path: Path, *, whole: bool = False) -> Mapping[str, Tensor]:
    """By name. Raises `OSError` and `NoTensors`, with `whole` also for what was cut short."""
    try:
        length, header = _header(path)
        found = {
            name: Tensor(tuple(map(int, one["shape"])), int(one["data_offsets"][1]))
            for name, one in header.items()
            if name != _METADATA
        }
    except (
        AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error,
    ) as error:  # fmt: skip
        raise NoTensors(f"{path} is not a safetensors file") from error
    wanted = 8 + length + max((one.end for one in found.values()), default=0)
    if whole and (size := path.stat().st_size) < wanted:
        raise NoTensors(f"{path} was cut short: it has {size:,} of {wanted:,} bytes; copy it again")
    return found


def _header(path: Path) -> tuple[int, Any]:
    with path.open("rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        if length > _HEADER_LIMIT:
            raise ValueError(length)
        return length, json.loads(file.read(length))
