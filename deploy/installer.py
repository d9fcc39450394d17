"""Installation of locked packages into virtual environments, with uv or pip.

uv is used if it is available, otherwise pip. Debian's Python may lack ensurepip and pip, so pip is
searched for in six places. Packages come from lock files with hashes (`--require-hashes`), and only
as wheels, so that no compiler is needed.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy import indexes

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "deploy" / "tools.lock"
SCRATCH = ROOT / "build" / "bootstrap"
DEBIAN_WHEELS = Path("/usr/share/python-wheels")
UV_OLDEST = (0, 5)


class BootstrapError(Exception):
    """A failed installation; the message says what is missing and how to get it."""


@dataclass(frozen=True, slots=True)
class Installer:
    """An installer of packages: the `uv` or `pip` command, and the package `places`."""

    uv: Path | None
    pip: tuple[str, ...] | None
    places: indexes.Places

    def install(self, python: Path, locks: Sequence[Path]) -> None:
        """Install lock files into the environment of `python`, each file checked by hash."""
        words = ["--require-hashes", "--only-binary", ":all:"]
        self.call(python, [*words, *(word for lock in locks for word in ("-r", str(lock)))])

    def install_project(self, python: Path) -> None:
        """Install the product itself in editable mode, with the build tools installed before."""
        self.call(python, ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)])

    def call(self, python: Path, arguments: Sequence[str]) -> None:
        failed = ""
        if self.uv:
            command = [str(self.uv), "pip", "install", "--python", str(python), *arguments]
            environ = {**os.environ, **self.places.uv_environment(os.environ)}
            failed = run([*command, *self.places.uv_arguments(os.environ)], environ)
            if not failed:
                return
        forged = "hash mismatch" in failed.lower()
        pip = None if forged else self.pip or find_pip(self.places)
        if pip:
            failed = run([*pip, "--python", str(python), "install", *arguments], dict(os.environ))
        if failed or not pip:
            raise BootstrapError(f"{explain(failed)}\n{failed}".strip())


def make_environment(python: Path, base: Path | None = None) -> Path:
    """Create an environment without pip from `base` or this interpreter; return `python`.

    An environment that works is kept. Raises `BootstrapError` when it cannot be created.
    """
    folder = python.parent.parent
    if python.exists() and not run([str(python), "-c", "import sys, ctypes, ssl"], None):
        return python
    if folder.exists():
        shutil.rmtree(folder)
    failed = run([str(base or sys.executable), "-m", "venv", "--without-pip", str(folder)], None)
    if failed:
        raise BootstrapError(f"cannot make {folder}: sudo apt-get install python3\n{failed}")
    return python


def find_installer(python: Path) -> Installer:
    """Find uv on PATH or in the environment, or install it there. Fall back to pip alone.

    Raises `BootstrapError` when neither is available.
    """
    places = indexes.configured(os.environ, home=Path.home())
    own = python.parent / "uv"
    for candidate in (shutil.which("uv"), str(own) if own.exists() else None):
        if candidate and uv_version(candidate) >= UV_OLDEST:
            return Installer(Path(candidate), None, places)
    pip = find_pip(places)
    if pip is None:
        raise BootstrapError(
            "no pip, no uv and no configured package index: sudo apt-get install python3-pip "
            "(or set PIP_INDEX_URL to your index)"
        )
    installer = Installer(None, pip, places)
    installer.install(python, [TOOLS])
    return Installer(own if own.exists() else None, pip, places)


def uv_version(path: str) -> tuple[int, ...]:
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"uv (\d+)\.(\d+)", answer.stdout)
    return tuple(int(part) for part in found.groups()) if found else (0, 0)


def find_pip(places: indexes.Places) -> tuple[str, ...] | None:
    """Find pip: this Python's, on PATH, a bundled wheel, the index or Debian's package."""
    commands = [(sys.executable, "-m", "pip"), ("pip3",), ("pip",)]
    for command in commands:
        if knows_python_option(command):
            return command
    wheels = [*DEBIAN_WHEELS.glob("pip-*.whl"), *bundled_wheels()]
    for wheel in wheels:
        if knows_python_option((sys.executable, f"{wheel}/pip")):
            return sys.executable, f"{wheel}/pip"
    lock = TOOLS.read_text(encoding="utf-8")
    fetched = indexes.fetch_wheel(places, lock, "pip", SCRATCH) or unpack_debian_pip()
    return (sys.executable, f"{fetched}/pip") if fetched else None


def knows_python_option(command: Sequence[str]) -> bool:
    """Return whether this pip can install into another environment (22.3 or later)."""
    if shutil.which(command[0]) is None:
        return False
    answer = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"pip (\d+)\.(\d+)", answer.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= (22, 3)


def bundled_wheels() -> list[Path]:
    return sorted((Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled").glob("pip-*.whl"))


def unpack_debian_pip() -> Path | None:
    """Download Debian's pip wheel and unpack it into build/. Return `None` if that fails."""
    unpack_debian("python3-pip-whl", SCRATCH)
    found = sorted((SCRATCH / "usr" / "share" / "python-wheels").glob("pip-*.whl"))
    return found[-1] if found else None


def unpack_debian(name: str, folder: Path) -> str:
    """Download a Debian package and unpack it into a folder. Return an error text or "".

    Needs no root and starts no service.
    """
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return "this is not Debian or Ubuntu"
    folder.mkdir(parents=True, exist_ok=True)
    failed = run(["apt-get", "download", "--quiet", name], None, folder)
    if failed and os.geteuid() == 0:
        run(["apt-get", "update", "--quiet"], None)
        failed = run(["apt-get", "download", "--quiet", name], None, folder)
    packages = sorted(folder.glob(f"{name}_*.deb"))
    if failed or not packages:
        return failed or f"no package {name}"
    return run(["dpkg", "-x", str(packages[-1]), str(folder)], None)


def run(command: Sequence[str], environ: dict[str, str] | None, folder: Path | None = None) -> str:
    """Run a command. Return "" on success, otherwise the last 20 lines of its output.

    On a terminal, an installing command writes to the terminal itself.
    """
    if sys.stderr.isatty() and "install" in command:
        code = subprocess.run(command, env=environ, cwd=folder, check=False).returncode
        return f"{command[0]} ended with {code}" if code else ""
    answer = subprocess.run(
        command, env=environ, cwd=folder, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return "\n".join(answer.stdout.splitlines()[-20:]) or "failed" if answer.returncode else ""


def explain(output: str) -> str:
    """Return the most likely cause of a failed installation, as one line."""
    if re.search(r"no (matching|compatible|usable) |no wheels", output, re.IGNORECASE):
        return "a locked package has no wheel for this machine: use x86_64 or aarch64 Linux"
    if re.search(r"\b(?:gcc|cc1|cc1plus|compiler)\b", output):  # \b: not in a hash
        return "a compiler is missing: sudo apt-get install build-essential"
    if re.search(r"hash", output, re.IGNORECASE):
        return "a package's file is not the locked one (is a mirror rewriting packages?)"
    return "packages could not be installed: is the package index reachable?"
