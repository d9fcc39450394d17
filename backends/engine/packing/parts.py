"""Writer of a bundle: files concatenated into parts of limited size, and a manifest.

Wheels and weights are already compressed or do not compress, so parts are plain byte ranges. A
file's position is the sum of the sizes before it. The manifest is written last: a bundle without
one is incomplete.
"""

import errno
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

from backends.engine.packages import InstallError
from backends.engine.packing import unpack

Say = Callable[[str, float | None], None]
LEAST_PART = 1 << 20
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
_INSTALL = """\
#!/bin/sh
# Unpacks and installs the engine that lies beside this file. Needs Python {python} and no network.
# sh install.sh --to FOLDER; the same again goes on where it ended.
here=$(cd "$(dirname "$0")" && pwd)
for python in ${{PYTHON:-python{python} python3}}; do
  command -v "$python" >/dev/null 2>&1 || continue
  exec "$python" "$here/unpack.py" "$here" --manifest-sha256 {sha256} "$@"
done
echo "breakeven: there is no Python {python} here: install it, or say PYTHON=where" >&2
exit 1
"""


@dataclass(frozen=True, slots=True)
class PackedBundle:
    folder: Path
    files: int
    total_bytes: int
    parts: int
    manifest_sha256: str


def part_size(text: str) -> int:
    """Parse a size such as `60M`, `4G` or plain bytes. Raises `InstallError` below 1 MiB."""
    found = re.fullmatch(r"(\d+)\s*([KMG]?)B?", text.strip().upper())
    size = int(found[1]) * _UNITS[found[2]] if found else 0
    if size < LEAST_PART:
        raise InstallError(f"--part-size {text}: a size of at least 2M, such as 60M or 4G")
    return size


def write_bundle(
    folder: Path,
    files: Sequence[tuple[str, Path]],
    facts: dict[str, Any],
    part_bytes: int,
    say: Say,
) -> PackedBundle:
    """Write a bundle of `files`: pairs of (path on the target, path here).

    An earlier bundle in `folder` is replaced, unless the disk is too small for the new one. Raises
    `InstallError` when the disk is full or a file cannot be read or written.
    """
    total = sum(path.stat().st_size for _, path in files)
    writer = _Parts(folder, part_bytes)
    entries = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_old_bundle(folder, total)
        with writer:
            for place, path in files:
                say(place, writer.written / total if total else None)
                entries.append({"path": place, **writer.add(path)})
        manifest = {"format": unpack.FORMAT, **facts, "files": entries, "parts": writer.parts}
        text = (json.dumps(manifest, indent=1) + "\n").encode()
        sha256 = hashlib.sha256(text).hexdigest()
        shutil.copyfile(unpack.__file__, folder / "unpack.py")
        install = _INSTALL.format(python=facts["python"], sha256=sha256)
        (folder / "install.sh").write_text(install, encoding="utf-8")
        (folder / "install.sh").chmod(0o755)
        (folder / unpack.MANIFEST).write_bytes(text)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InstallError(
                f"the disk of {folder} is full: free space, then repeat the command"
            ) from error
        raise InstallError(f"{error.filename or folder}: {error.strerror}") from error
    return PackedBundle(folder, len(entries), total, len(writer.parts), sha256)


def _remove_old_bundle(folder: Path, total: int) -> None:
    """Remove an earlier bundle, and no other file. Raises `InstallError` if space is lacking."""
    parts = [path for path in folder.glob("part.*") if re.fullmatch(r"part\.\d{3,}", path.name)]
    free = shutil.disk_usage(folder).free
    if total > free + sum(path.stat().st_size for path in parts):
        raise InstallError(
            f"{folder} has {free / 1e9:.1f} GB free and the bundle takes {total / 1e9:.1f} GB"
        )
    for old in (folder / unpack.MANIFEST, *parts):
        old.unlink(missing_ok=True)


@dataclass
class _Parts:
    folder: Path
    part_bytes: int
    parts: list[dict[str, Any]] = field(default_factory=list)
    written: int = 0
    _file: BinaryIO | None = None
    _left: int = 0
    _digest: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def add(self, path: Path) -> dict[str, Any]:
        """Append a file to the parts. Return the size and hash of the written bytes."""
        digest, size = hashlib.sha256(), 0
        with path.open("rb") as source:
            while chunk := source.read(unpack.CHUNK):
                digest.update(chunk)
                size += len(chunk)
                self._write(memoryview(chunk))
        return {"size": size, "sha256": digest.hexdigest()}

    def _write(self, data: memoryview) -> None:
        while len(data):
            if self._file is None:
                self.parts.append({"name": f"part.{len(self.parts):03d}", "size": 0})
                self._file = (self.folder / self.parts[-1]["name"]).open("wb")
                self._left, self._digest = self.part_bytes, hashlib.sha256()
            piece = data[: self._left]
            self._file.write(piece)
            self._digest.update(piece)
            self.parts[-1]["size"] += len(piece)
            self.written += len(piece)
            self._left -= len(piece)
            data = data[len(piece) :]
            if not self._left:
                self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self.parts[-1]["sha256"] = self._digest.hexdigest()
            self._file = None
