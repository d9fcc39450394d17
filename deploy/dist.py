"""Build of wheel and source archive, with a trial of the wheel: `python -m deploy.dist`.

`make dist` runs it. Both files are written to dist/. A wheel built from the source archive alone
must contain the same files. The wheel is installed with requirements.lock into a new environment,
and its commands run in an empty folder: help, schema, doctor, and the demo until it is ready.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from deploy.installer import BootstrapError, find_installer, make_environment

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "dist"
EPOCH = "SOURCE_DATE_EPOCH"  # reproducible-builds.org
READY_S = 180.0
STEP_S = 0.5
NO_ANSWER = (OSError, urllib.error.URLError)


class DistError(Exception):
    """A fault of the built packages."""


def build_all(out: Path = OUT) -> tuple[Path, Path]:
    """Build wheel and source archive. Return their paths.

    Raises `DistError` when the source archive builds a wheel with other files.
    """
    shutil.rmtree(out, ignore_errors=True)
    _build(ROOT, out, "wheel", "sdist")
    (wheel,), (archive,) = out.glob("*.whl"), out.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        again = Path(folder) / "again"
        _build(source, again, "wheel")
        (second,) = again.glob("*.whl")
        differing = differences(wheel, second)
    if differing:
        words = ", ".join(differing[:10])
        raise DistError(f"the source archive builds another wheel: {words}")
    return wheel, archive


def differences(first: Path, second: Path) -> list[str]:
    """Return the sorted names of files that are in one wheel only or differ."""
    ours, theirs = _digests(first), _digests(second)
    return sorted(name for name in ours.keys() | theirs if ours.get(name) != theirs.get(name))


def try_wheel(wheel: Path, folder: Path) -> Iterator[str]:
    """Install the wheel in `folder` and run its commands. Yield a line per passed step.

    Raises `DistError` when a command fails, `BootstrapError` when the installation fails.
    """
    python = folder / "venv" / "bin" / "python"
    make_environment(python)
    installer = find_installer(python)
    installer.install(python, [ROOT / "requirements.lock"])
    installer.call(python, ["--no-deps", str(wheel)])
    yield f"installed {wheel.name} beside requirements.lock"
    empty = folder / "empty"
    empty.mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = str(python.parent / "breakeven")
    for words in (["--help"], ["config", "schema"], ["engine", "list"]):
        _run([command, *words], empty, environ)
        yield f"breakeven {' '.join(words)}"
    with _demo(command, empty, environ) as url:
        yield f"breakeven demo: ready at {url}"
        _run([command, "doctor", "--offline"], empty, environ, statuses=(0, 1))
        yield "breakeven doctor"
    yield "breakeven demo ends on its own word"


@contextlib.contextmanager
def _demo(command: str, folder: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Start the demo and yield its URL once it is ready. Stop it afterwards with SIGINT."""
    log = folder / "demo.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [command, "demo"], cwd=folder, env=dict(environ), stdout=file, stderr=file,
            start_new_session=True,
        )  # fmt: skip
    try:
        url = _await_ready(process, log)
        yield url
        process.send_signal(signal.SIGINT)
        status = process.wait(60)
        if status not in (0, 130):
            raise DistError(f"the demo ended with {status}: {_tail(log)}")
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _await_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DistError(f"the demo ended with {process.returncode}: {_tail(log)}")
        for word in log.read_text(encoding="utf-8", errors="replace").split():
            if word.startswith("http://") and word.rstrip("/").endswith("/v1"):
                url = word.rstrip("/").removesuffix("/v1")
                with contextlib.suppress(*NO_ANSWER):
                    urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
                    return url
        time.sleep(STEP_S)
    raise DistError(f"the demo was not ready within {READY_S:g} s: {_tail(log)}")


def _build(source: Path, out: Path, *targets: str) -> None:
    epoch = {EPOCH: os.environ.get(EPOCH) or _commit_time()}
    words = [word for target in targets for word in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", *words, "-d", str(out)]
    _run(command, source, {**os.environ, **epoch})


def _commit_time() -> str:
    answer = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    return answer.stdout.strip() or "0"


def _run(
    command: list[str], folder: Path, environ: Mapping[str, str], statuses: tuple[int, ...] = (0,)
) -> None:
    answer = subprocess.run(
        command, cwd=folder, env=dict(environ), check=False, capture_output=True, text=True
    )
    if answer.returncode not in statuses:
        words = " ".join(command[-3:])
        raise DistError(f"{words} ended with {answer.returncode}: {answer.stderr[-2000:]}")


def _digests(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


def main() -> int:
    try:
        wheel, archive = build_all()
        for path in (wheel, archive):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB  sha256:{digest}")
        with tempfile.TemporaryDirectory() as folder:
            for line in try_wheel(wheel, Path(folder)):
                print(f"ok  {line}", flush=True)
    except (DistError, BootstrapError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
