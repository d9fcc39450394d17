"""Script that unpacks and installs a bundle of `breakeven engine pack` without a network.

It is part of each bundle and uses the standard library only. Complete files are skipped, so that
the same command continues after an interruption or after a missing part was added. Every file is
checked against the manifest, including those of an earlier run.
"""

import argparse
import errno
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

FORMAT = 1
MANIFEST = "manifest.json"
CHUNK = 1 << 20
Say = Callable[[str, "float | None"], None]


class UnpackError(Exception):
    """The bundle cannot be unpacked on this host; the text says why and what to do."""


def unpack(
    bundle: Path, to: Path, say: Say, *, manifest_sha256: str = "", gpu: bool = True
) -> dict[str, Any]:
    """Check the host, extract every file, and install. Return the manifest.

    Raises `UnpackError`. `gpu` is whether the GPU's driver is checked.
    """
    manifest = read_manifest(bundle, manifest_sha256)
    check_host(manifest, gpu=gpu)
    try:
        to.mkdir(parents=True, exist_ok=True)
        extract(bundle, manifest, to, say)
        install(manifest, to, say)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UnpackError(
                f"the disk of {to} is full: free space, then repeat the command"
            ) from error
        raise UnpackError(f"{error.filename or to}: {error.strerror}") from error
    return manifest


def read_manifest(bundle: Path, sha256: str = "") -> dict[str, Any]:
    """Return the manifest of a bundle.

    Raises `UnpackError` when it is missing, changed, of another format, or names a path outside of
    the folder.
    """
    path = bundle / MANIFEST
    try:
        text = path.read_bytes()
        manifest: dict[str, Any] = json.loads(text)
        for entry in manifest["files"]:
            place = PurePosixPath(entry["path"])
            if place.is_absolute() or ".." in place.parts or not place.parts:
                raise UnpackError(f"{path}: {entry['path']!r} leads out of the folder")
            int(entry["size"]), str(entry["sha256"])
        for part in manifest["parts"]:
            if PurePosixPath(part["name"]).name != part["name"]:
                raise UnpackError(f"{path}: {part['name']!r} is not a valid part name")
            int(part["size"]), str(part["sha256"])
    except FileNotFoundError as error:
        raise UnpackError(
            f"{path} is missing: packing was interrupted, or the file was not copied"
        ) from error
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UnpackError(f"{path} cannot be read: {error}: copy it again") from error
    if manifest.get("format") != FORMAT:
        raise UnpackError(f"{path} has format {manifest.get('format')}, this reads {FORMAT}")
    if sha256 and hashlib.sha256(text).hexdigest() != sha256:
        raise UnpackError(f"{path} differs from the packed file: copy it again")
    return manifest


def check_host(manifest: dict[str, Any], *, gpu: bool = True) -> None:
    """Check Python, processor, C library and, for CUDA, the driver; report all faults at once."""
    faults = []
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if here != manifest["python"]:
        faults.append(
            f"it was packed for Python {manifest['python']}, this is {here}: run "
            f"PYTHON=python{manifest['python']} sh install.sh, or pack with --python {here}"
        )
    if platform.machine() != manifest["machine"]:
        faults.append(f"it was packed for {manifest['machine']}, this is {platform.machine()}")
    library, version = platform.libc_ver()
    if library == "glibc" and numbers(version) < numbers(manifest["glibc"]):
        faults.append(f"it needs glibc {manifest['glibc']} or newer, this host has {version}")
    if manifest.get("driver") and gpu:
        faults += driver_faults(int(manifest["driver"]), driver())
    if faults:
        raise UnpackError("this host does not fit the bundle:\n  " + "\n  ".join(faults))


def driver() -> str:
    """Return the NVIDIA driver's version, or "" if there is none."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    asked = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(  # noqa: S603  (no shell)
        asked, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.split()[0] if done.returncode == 0 and done.stdout.split() else ""


def driver_faults(least: int, found: str) -> list[str]:
    if not found:
        words = "it is for NVIDIA GPUs, and nvidia-smi finds none here: install the driver, "
        return [words + "pack with --flavour cpu, or say --no-gpu-check"]
    if numbers(found)[:1] < (least,):
        return [f"its CUDA needs driver {least} or newer, this host has {found}: update the driver"]
    return []


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def extract(bundle: Path, manifest: dict[str, Any], to: Path, say: Say) -> None:
    """Extract every incomplete file. Raises `UnpackError`, at the end, naming missing parts."""
    to.mkdir(parents=True, exist_ok=True)
    todo = []
    total = sum(entry["size"] for entry in manifest["files"]) or 1
    seen = 0
    for entry, offset in files_with_offsets(manifest):
        seen += entry["size"]
        say(f"looking at {entry['path']}", seen / total)
        if not is_whole(to / entry["path"], entry):
            todo.append((entry, offset))
    _check_disk_space(manifest, to, sum(entry["size"] for entry, _ in todo))
    lost: dict[str, str] = {}
    done = 0
    for entry, offset in todo:
        done += entry["size"]
        missing = missing_parts(bundle, manifest, offset, entry["size"])
        lost |= missing
        if not missing:
            _extract_file(bundle, manifest, (entry, offset), to)
            say(entry["path"], done / (sum(each_entry["size"] for each_entry, _ in todo) or 1))
    if lost:
        names = "\n  ".join(f"{name} {why}" for name, why in sorted(lost.items()))
        raise UnpackError(
            f"parts are missing in {bundle}: copy them, then repeat the command\n  {names}"
        )


def _check_disk_space(manifest: dict[str, Any], to: Path, files_bytes: int) -> None:
    """Raise `UnpackError` if the disk is too small for the files and the installed packages.

    Packages that are already installed need no more space.
    """
    done = (to / "engine" / "breakeven-engine.json").exists()
    need = files_bytes + (0 if done else int(manifest.get("installed_bytes", 0)))
    free = shutil.disk_usage(to).free
    if need > free:
        raise UnpackError(
            f"{to} has {free / 1e9:.1f} GB free and {need / 1e9:.1f} GB are needed: "
            "make room, or choose another disk with --to"
        )


def files_with_offsets(manifest: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each file with its offset in the concatenation of all parts."""
    offset = 0
    for entry in manifest["files"]:
        yield entry, offset
        offset += entry["size"]


def part_spans(
    manifest: dict[str, Any], offset: int, size: int
) -> list[tuple[dict[str, Any], int, int]]:
    """Return the parts that hold a byte range, each as (part, offset in it, number of bytes)."""
    found, begins = [], 0
    for part in manifest["parts"]:
        first = max(offset, begins)
        last = min(offset + size, begins + part["size"])
        if first < last:
            found.append((part, first - begins, last - first))
        begins += part["size"]
    return found


def missing_parts(bundle: Path, manifest: dict[str, Any], offset: int, size: int) -> dict[str, str]:
    """Return the parts of a byte range that are missing or incomplete, with the reason."""
    found = {}
    for part, _, _ in part_spans(manifest, offset, size):
        path = bundle / part["name"]
        if not path.exists():
            found[part["name"]] = "is missing"
        elif path.stat().st_size != part["size"]:
            found[part["name"]] = f"has {path.stat().st_size} of {part['size']} bytes"
    return found


def _extract_file(
    bundle: Path, manifest: dict[str, Any], which: tuple[dict[str, Any], int], to: Path
) -> None:
    entry, offset = which
    target = to / entry["path"]
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    digest = hashlib.sha256()
    try:
        with partial.open("wb") as out:
            for part, begin, size in part_spans(manifest, offset, entry["size"]):
                with (bundle / part["name"]).open("rb") as source:
                    source.seek(begin)
                    left = size
                    while chunk := source.read(min(CHUNK, left)):
                        digest.update(chunk)
                        out.write(chunk)
                        left -= len(chunk)
        if digest.hexdigest() != entry["sha256"]:
            bad = changed(bundle, manifest, offset, entry["size"])
            raise UnpackError(
                f"{entry['path']} is not as it was packed: {', '.join(bad) or 'the manifest'} "
                "changed on the way: copy it again, then run it again"
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def changed(bundle: Path, manifest: dict[str, Any], offset: int, size: int) -> list[str]:
    """Return the names of a byte range's parts whose hash differs."""
    parts = [part for part, _, _ in part_spans(manifest, offset, size)]
    return [part["name"] for part in parts if sha256_of(bundle / part["name"]) != part["sha256"]]


def is_whole(path: Path, entry: dict[str, Any]) -> bool:
    try:
        return path.stat().st_size == int(entry["size"]) and sha256_of(path) == str(entry["sha256"])
    except OSError:
        return False


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def install(manifest: dict[str, Any], to: Path, say: Say) -> None:
    """Install the command into `venv` and the engine into `engine`, without a network."""
    wheels = to / "wheels"
    environ = offline_environ(os.environ, wheels)
    venv, python = to / "venv", to / "venv" / "bin" / "python"
    say("making the environment of breakeven", None)
    if not python.exists():
        _run([sys.executable, "-m", "venv", "--without-pip", str(venv)], environ, say)
    pip = [str(python), "-I", f"{to / manifest['pip']}/pip", "install", "--no-input", "--no-deps"]
    lock = ["--require-hashes", "--only-binary", ":all:", "-r", str(to / manifest["tools"])]
    # One run for both locks: each run of pip from its wheel compiles it again.
    lock += ["-r", str(lock_own(manifest, to))]
    say("installing breakeven", None)
    _run([*pip, *lock], environ, say)
    command = [str(to / "venv" / "bin" / "breakeven"), "engine", "install"]
    command += ["--directory", str(to / "engine"), "--flavour", manifest["flavour"]]
    say("installing the engine", None)
    _run(command, environ, say)


def lock_own(manifest: dict[str, Any], to: Path) -> Path:
    """Write a lock of pip and our own wheel, with hashes from the manifest. Return its path."""
    hashes = {entry["path"]: entry["sha256"] for entry in manifest["files"]}
    lock = to / "own.lock"
    lines = [
        f"{(to / path).resolve().as_uri()} --hash=sha256:{hashes[path]}\n"
        for path in (manifest["pip"], manifest["own"])
    ]
    lock.write_text("".join(lines), encoding="utf-8")
    return lock


def offline_environ(environ: Any, wheels: Path) -> dict[str, str]:
    """Return environment variables that make the bundle's wheels the only package source."""
    kept = {
        name: value for name, value in environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON", "VIRTUAL_ENV"))
    }  # fmt: skip
    return kept | {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": wheels.as_uri(),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_NO_CONFIG": "1",
        "UV_FIND_LINKS": str(wheels),
    }


def _run(command: list[str], environ: dict[str, str], say: Say) -> None:
    tail: list[str] = []
    with subprocess.Popen(  # noqa: S603  (made above, no shell)
        command, env=environ, text=True, errors="replace", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            tail = [*tail[-19:], line.rstrip()]
            say(line.strip()[:70], None)
    if process.returncode:
        told = "\n".join(tail)
        full = "No space left" in told
        advice = "the disk is full: free space, then repeat the command\n" if full else ""
        raise UnpackError(f"{advice}{Path(command[0]).name} failed:\n{told}")


def _drawn() -> Say:
    """Return a progress printer: one line, rewritten on a terminal, else a line at each 5 %."""
    last = ""

    def show_progress(words: str, fraction: "float | None") -> None:
        nonlocal last
        share = "     " if fraction is None else f"{fraction:4.0%} "
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{share}{words[:90]}")
            sys.stderr.flush()
            return
        step = words.split(" ", maxsplit=1)[0] if fraction is None else f"{int(fraction * 20)}"
        if step != last:
            last = step
            sys.stderr.write(f"{share}{words}\n")

    return show_progress


def closing_text(manifest: dict[str, Any], to: Path) -> str:
    """Return the final message: the paths of the installation, and how to configure them."""
    lines = [
        f"vLLM {manifest['vllm']} ({manifest['flavour']}) is in {to / 'engine'}",
        f"breakeven is in {to / 'venv' / 'bin' / 'breakeven'}",
        f"in its configuration: pools.NAME.engine.environment: {to / 'engine'}",
    ]
    if manifest.get("model"):
        lines.append(f"                      pools.NAME.engine.model: {to / manifest['model']}")
    lines.append(f"{to / 'wheels'} is needed no more")
    return "\n".join(lines)


def main(arguments: "list[str] | None" = None) -> int:
    parser = argparse.ArgumentParser(prog="install.sh")
    parser.add_argument("bundle", type=Path, help="folder with the parts and their manifest")
    parser.add_argument("--to", type=Path, default=Path("breakeven-engine"), help="where it goes")
    parser.add_argument("--manifest-sha256", default="", help="what the manifest must have")
    parser.add_argument(
        "--no-gpu-check", action="store_true", help="do not ask for a GPU and its driver"
    )
    given = parser.parse_args(arguments)
    to = given.to.resolve()
    try:
        manifest = unpack(
            given.bundle, to, _drawn(),
            manifest_sha256=given.manifest_sha256, gpu=not given.no_gpu_check,
        )  # fmt: skip
    except UnpackError as error:
        sys.stderr.write(f"\nbreakeven: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped: the same command goes on\n")
        return 130
    sys.stderr.write("\n")
    sys.stdout.write(closing_text(manifest, to) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
