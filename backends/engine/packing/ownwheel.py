"""Wheel of the `breakeven` distribution, made from the running code.

The code may be a checkout or an installed package. So a bundle carries exactly the code that made
it, and the packing host needs no build tools.
"""

import base64
import hashlib
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

NAME = "breakeven"
PACKAGES = ("gateway", "backends", "router", "ledger", "dashboard")
_STAMP = (1980, 1, 1, 0, 0, 0)  # fixed, so that equal files give equal wheels
_WHEEL = "Wheel-Version: 1.0\nGenerator: breakeven\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_own_wheel(folder: Path) -> Path:
    """Write the wheel into `folder` and return its path. The same code gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    ours = distribution(NAME)
    path = folder / f"{NAME}-{ours.version}-py3-none-any.whl"
    info = f"{NAME}-{ours.version}.dist-info"
    root = Path(__file__).resolve().parents[3]
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in [*_files(root), *_metadata(ours, info)]:
            archive.writestr(zipfile.ZipInfo(name, _STAMP), data, zipfile.ZIP_DEFLATED, 1)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        lines = "\n".join([*record, f"{info}/RECORD,,", ""])
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", _STAMP), lines)
    return path


def own_lock(root: Path | None = None) -> Path:
    """Return the lock of gateway and dashboard.

    It is beside the engine's locks in an installed package, and in `root` in a checkout.
    """
    base = root or Path(__file__).resolve().parents[3]
    packaged = Path(__file__).resolve().parents[1] / "locks" / "gateway" / "requirements.lock"
    return packaged if packaged.is_file() else base / "requirements.lock"


def _files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (installed name, content) of each file of the wheel.

    Folders outside the packages get the names that the checkout's build gives them.
    """
    for package in PACKAGES:
        yield from _tree(root / package, package)
    project = root / "pyproject.toml"
    if not project.is_file():
        return
    build = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    for source, place in sorted(build["targets"]["wheel"]["force-include"].items()):
        path = root / source
        if path.is_dir():
            yield from _tree(path, place)
        else:
            yield place, path.read_bytes()


def _tree(folder: Path, place: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in inside.parts:
            yield f"{place}/{inside.as_posix()}", path.read_bytes()


def _metadata(ours: Distribution, info: str) -> Iterator[tuple[str, bytes]]:
    for name in ("METADATA", "entry_points.txt"):
        yield f"{info}/{name}", (ours.read_text(name) or "").encode()
    yield f"{info}/WHEEL", _WHEEL.encode()
