"""Package installation with uv, or with pip if uv is missing or fails.

The output of both becomes progress reports. uv does not read pip's configuration, so pip's index
settings are passed to it as environment variables. Arguments would be visible, and an index address
may hold a password. Several sources are safe because every file is checked against the lock's
hashes.
"""

import ast
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Say = Callable[[str, float | None], None]

DEBIAN_WHEELS = Path("/usr/share/python-wheels")
_TAIL_LINES = 20


class InstallError(Exception):
    """An installation failed; the text ends with the last lines of the tool's output."""


@dataclass(frozen=True, slots=True)
class PackageInstaller:
    """Installer for the environment of `python`. At least one of `uv` and `pip` is set."""

    python: Path
    uv: Path | None
    pip: tuple[str, ...] | None

    def make_environment(self, directory: Path) -> None:
        if self.uv is not None:
            command = [str(self.uv), "venv", "--quiet", "--relocatable", "--python"]
            code, _ = run([*command, sys.executable, str(directory)], os.environ)
            if code == 0:
                return
        command = [sys.executable, "-m", "venv", "--without-pip", str(directory)]
        code, tail = run(command, os.environ)
        if code != 0:
            raise InstallError(f"no virtual environment at {directory}\n{tail}")

    def install_lock(self, lock: Path, say: Say, target: Path | None = None) -> None:
        """Install exactly the packages of a lock; every hash must match. Raises `InstallError`.

        `target` is a folder outside the environment to install into.
        """
        words = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(lock)]
        words += [] if target is None else ["--target", str(target)]
        self._install(words, say)

    def install_files(self, files: Sequence[Path], say: Say) -> None:
        self._install(["--no-deps", *map(str, files)], say)

    def _install(self, words: Sequence[str], say: Say) -> None:
        tail = ""
        if self.uv is not None:
            command = [str(self.uv), "pip", "install", "--python", str(self.python)]
            meter = _UvMeter(say)
            environ = {**os.environ, **uv_places(self.pip, os.environ)}
            code, tail = run([*command, *words], environ, meter.line)
            if code == 0:
                return
        if self.pip is not None:
            command = [*direct_pip(self.pip, self.python), "install", "--no-input"]
            code, tail = run([*command, *words], os.environ, lambda line: say(line, None))
            if code == 0:
                return
        raise InstallError(f"packages could not be installed\n{tail}")


def find_installer(python: Path) -> PackageInstaller:
    beside = Path(sys.executable).with_name("uv")
    on_path = shutil.which("uv")
    uv = beside if beside.exists() else Path(on_path) if on_path else None
    pip = find_pip()
    if uv is None and pip is None:
        raise InstallError(
            "neither uv nor pip is installed: `pip install uv`, or `apt-get install pip`"
        )
    return PackageInstaller(python, uv, pip)


def find_pip() -> tuple[str, ...] | None:
    """Return the command of a pip that can install into another environment, or `None`.

    pip is searched by its files, because importing it takes 1 s, or 2 s from a wheel, whose
    bytecode Python does not cache. Only a `pip3` on PATH is started. Version 22.3 is needed.
    """
    own = importlib.util.find_spec("pip")
    if own is not None and own.origin is not None:
        runner = Path(own.origin).with_name("__pip-runner__.py")  # since 22.2
        if runner.is_file():
            return sys.executable, str(runner)
    bundled = Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled"
    for wheel in (*bundled.glob("pip-*.whl"), *DEBIAN_WHEELS.glob("pip-*.whl")):
        if _is_recent(wheel.name):
            return sys.executable, f"{wheel}/pip"
    code, tail = run(["pip3", "--version"], os.environ)
    return ("pip3",) if code == 0 and _is_recent(tail) else None


def _is_recent(words: str) -> bool:
    version = re.search(r"^pip[- ](\d+)\.(\d+)", words, re.MULTILINE)
    return version is not None and (int(version[1]), int(version[2])) >= (22, 3)


def direct_pip(pip: Sequence[str], python: Path) -> list[str]:
    """Return the command that runs this pip on the environment of `python`.

    The environment's Python runs pip's files, unless pip is a command of its own. That command gets
    `--python`, which starts pip twice.
    """
    if pip[0] == sys.executable:
        return [str(python), *pip[1:]]
    return [*pip, "--python", str(python)]


def uv_places(pip: Sequence[str] | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return pip's index settings as uv's variables, except those set in `environ`."""
    if pip is None:
        return {}
    settings = read_pip_config(_list_pip_config(tuple(pip), tuple(sorted(environ.items()))))
    places = {"UV_INDEX_STRATEGY": "unsafe-best-match", **settings}
    alias = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_INDEX": "UV_EXTRA_INDEX_URL"}
    return {
        name: value
        for name, value in places.items()
        if name not in environ and alias.get(name, name) not in environ
    }


@functools.lru_cache(maxsize=1)  # each step of an installation reads it
def _list_pip_config(pip: tuple[str, ...], environ: tuple[tuple[str, str], ...]) -> str:
    return run([*pip, "config", "list"], dict(environ), keep_lines=200)[1]


def read_pip_config(listing: str) -> dict[str, str]:
    """Parse `pip config list` (`section.name='value'`) into uv's variables.

    Later lines take precedence.
    """
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
        "trusted-host": "UV_INSECURE_HOST",
    }
    found: dict[str, str] = {}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        name = names.get(key.strip().rpartition(".")[2])
        if name is None:
            continue
        try:
            text = str(ast.literal_eval(value))
        except (ValueError, SyntaxError):
            continue
        separator = "," if name == "UV_FIND_LINKS" else " "
        found[name] = separator.join(text.split())
    return found


class _UvMeter:
    """Download progress from uv's output: `Downloading x (12.3MiB)`, then `Downloaded x`."""

    _UNITS = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}  # noqa: RUF012  (constant)

    def __init__(self, say: Say) -> None:
        self._say = say
        self._bytes: dict[str, float] = {}
        self._done = 0.0

    def line(self, line: str) -> None:
        started = re.search(r"Downloading (\S+) \(([\d.]+)\s*(B|KiB|MiB|GiB)\)", line)
        if started:
            self._bytes[started[1]] = float(started[2]) * self._UNITS[started[3]]
        ended = re.search(r"Downloaded (\S+)", line)
        if ended:
            self._done += self._bytes.get(ended[1], 0.0)
        if not line.lstrip().startswith(("+", "-")):
            total = sum(self._bytes.values())
            self._say(line.strip(), self._done / total if total else None)


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    on_line: Callable[[str], None] | None = None,
    *,
    keep_lines: int = _TAIL_LINES,
    timeout_s: float = 1800.0,
) -> tuple[int, str]:
    """Run a command to its end. Return its exit code and the last lines of its output.

    The exit code is 127 if the command cannot be started.
    """
    tail: deque[str] = deque(maxlen=keep_lines)
    try:
        process = subprocess.Popen(  # noqa: S603  (the commands are built above, no shell)
            list(command), env=dict(environ), text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError as error:
        return 127, str(error)
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            tail.append(line.rstrip())
            if on_line is not None:
                on_line(line.rstrip())
        code = process.wait(timeout=timeout_s)
    return code, "\n".join(tail)
