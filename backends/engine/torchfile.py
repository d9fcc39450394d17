"""Reader of tensors in a file of `torch.save`, without torch and without running its code.

The file is a zip archive: a pickle lists the tensors, and each one's numbers are a member of the
archive. A pickle is a program, so only the few operations that plain weights need are accepted.
vLLM's own reader has the same limit.
"""

import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from backends.engine.safetensors import BITS, NoTensors, Tensor

SUFFIX = ".bin"
OLD = b"\x80"  # first byte of files before torch used archives
PICKLE_BYTES = 1 << 26
PIECE_BYTES = 1 << 24
_TYPES = {
    "FloatStorage": "F32", "DoubleStorage": "F64", "HalfStorage": "F16", "BFloat16Storage": "BF16",
    "CharStorage": "I8", "ByteStorage": "U8", "ShortStorage": "I16", "IntStorage": "I32",
    "LongStorage": "I64", "BoolStorage": "BOOL",
}  # fmt: skip


class StoredTensor(NamedTuple):
    """Tensor of an archive. `member` holds its numbers; `start` and `end` are offsets in it."""

    tensor: Tensor
    member: str


def is_old(path: Path) -> bool:
    """Return whether torch wrote the file before it used archives. Raises `OSError`."""
    with path.open("rb") as file:
        return file.read(1) == OLD


def tensors(path: Path) -> Mapping[str, StoredTensor]:
    """Return the tensors of a file by name.

    Raises `OSError` when the file cannot be read and `NoTensors` when it is not valid.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if len(names) != 1 or archive.getinfo(names[0]).file_size > PICKLE_BYTES:
                raise NoTensors(f"{path} is not a file of torch.save")
            with archive.open(names[0]) as file:
                found = _Reader(file, names[0].removesuffix("data.pkl") + "data/").load()
            _complete(path, archive, found)
    except zipfile.BadZipFile as error:
        words = "was cut short, or is not a file of torch.save: copy it again"
        raise NoTensors(f"{path} {words}") from error
    except (
        pickle.UnpicklingError, AttributeError, EOFError, LookupError, RecursionError, TypeError,
        ValueError,
    ) as error:  # fmt: skip
        raise NoTensors(f"{path} holds more than plain weights: {error}") from error
    return dict(found)


def pieces(path: Path, member: str) -> Iterator[bytes]:
    """Yield the bytes of a member in pieces. Raises `OSError` and `NoTensors`."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
    except zipfile.BadZipFile as error:
        raise NoTensors(f"{path} is damaged: {error}: copy it again") from error


def _complete(path: Path, archive: zipfile.ZipFile, found: Any) -> None:
    if not isinstance(found, Mapping):
        raise NoTensors(f"{path} has no named weights")
    for name, finding in found.items():
        if not isinstance(name, str) or not isinstance(finding, StoredTensor):
            raise NoTensors(f"{path} holds {name!r}, which is not a tensor")
        size = None
        with suppress(KeyError):
            size = archive.getinfo(finding.member).file_size
        if size is None or size < finding.tensor.end:
            raise NoTensors(f"{path}: numbers of {name} are missing: copy it again")


class _Reader(pickle.Unpickler):
    def __init__(self, file: Any, place: str) -> None:
        super().__init__(file)
        self._place = place

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _parameter
        if module == "torch" and name in _TYPES:
            return _TYPES[name]
        raise pickle.UnpicklingError(f"it loads {module}.{name}")

    def persistent_load(self, pid: Any) -> tuple[str, str]:
        kind, dtype, key, *_ = pid
        if kind != "storage" or dtype not in _TYPES.values():
            raise pickle.UnpicklingError(f"it loads {kind!r}")
        return str(dtype), f"{self._place}{key}"


def _tensor(storage: tuple[str, str], offset: int, shape: Any, *_: Any) -> StoredTensor:
    dtype, member = storage
    width = BITS[dtype] // 8
    sizes = tuple(map(int, shape))
    start = int(offset) * width
    return StoredTensor(Tensor(sizes, dtype, start, start + math.prod(sizes) * width), member)


def _parameter(data: StoredTensor, *_: Any) -> StoredTensor:
    return data
