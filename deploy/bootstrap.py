"""Set up and run a fresh clone: `sh deploy/python -m deploy.bootstrap VERB`.

    install   .venv with the gateway and the dashboard, and the `breakeven` command in it
    run       install, then `breakeven up`          (options are passed on: --keys, --config FILE)
    demo      install, then `breakeven demo`
    tools     install, and the test tools
    test      tools, then pytest, while the real parts of its tests are installed in parallel
    near      tools, then the tests that belong to the named files: deploy/near.py
    parts     install, then the named parts (all, if none is named)

This module needs only the standard library. A second run takes a moment and changes nothing: a
stamp in `.venv` holds the hashes of what was installed. Each verb is one line in the Makefile.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy import coming_parts
from deploy.installer import BootstrapError, Installer, find_installer, make_environment
from deploy.parts import UNAVAILABLE
from deploy.partsinstall import install_parts, missing_parts
from gateway.host.stages import StartStages

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
STAMP = ROOT / ".venv" / "breakeven-installed.json"
PRODUCT = (ROOT / "deploy" / "tools.lock", ROOT / "requirements.lock")
COMPILED = (  # entry modules of processes and commands; their imports are compiled, too
    "gateway.cli.serve, gateway.cli.ledger, gateway.cli.keys, gateway.cli.up",
    "gateway.worker.__main__",
    "gateway.host.telemetry, ledger.writer",
    "dashboard.start",
)
TESTS = (ROOT / "tests" / "requirements.lock",)
VERBS = ("install", "run", "demo", "tools", "test", "near", "parts")


def main(arguments: Sequence[str]) -> int:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("deploy.bootstrap", description=__doc__, formatter_class=style)
    parser.add_argument("verb", choices=VERBS)
    options, rest = parser.parse_known_args(arguments)
    stages = StartStages(clock=time.monotonic, say=print_line)
    try:
        return perform_verb(options.verb, [word for word in rest if word != "--"], stages)
    except BootstrapError as error:
        print(f"breakeven: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def perform_verb(verb: str, rest: list[str], stages: StartStages) -> int:
    testing = verb in {"tools", "test", "near"}
    installer = install(stages, testing=testing)
    if verb == "parts":
        install_parts([word for word in rest if word[0] != "-"], PYTHON, stages, installer)
    if verb in {"run", "demo"}:
        command = "up" if verb == "run" else "demo"
        exec_product([str(PYTHON.parent / "breakeven"), command, *rest], stages)
    for line in stages.table():
        print_line(line)
    if verb == "test":
        os.environ[UNAVAILABLE] = ""
        coming_parts.begin(missing_parts([], late=False), PYTHON)
        exec_product([str(PYTHON), "-m", "pytest", *rest], stages)
    if verb == "near":
        exec_product([str(PYTHON), "-m", "deploy.near", *rest], stages)
    if verb == "install":
        print_line("installed: .venv/bin/breakeven --help")
    return 0


def install(stages: StartStages, *, testing: bool) -> Installer | None:
    """Install the locked packages in `.venv`. Return None if all are installed already."""
    locks = [*PRODUCT, *(TESTS if testing else ())]
    if not is_requested_python(PYTHON, os.environ):
        shutil.rmtree(PYTHON.parent.parent)
    if all(is_stamped(lock) for lock in [*locks, ROOT / "pyproject.toml"]):
        print_line("everything is installed")
        return None
    with stages.stage("virtual environment"):
        make_environment(PYTHON)
    with stages.stage("package installer"):
        installer = find_installer(PYTHON)
    what = "gateway, dashboard and test tools" if testing else "gateway and dashboard"
    with stages.stage(f"{what} ({count(locks)} packages)"):
        installer.install(PYTHON, locks)
        installer.install_project(PYTHON)
    with stages.stage("bytecode"):
        compile_ahead()
    record = {key(path): digest(path) for path in [*locks, ROOT / "pyproject.toml"]}
    STAMP.write_text(json.dumps(record, indent=1), encoding="utf-8")
    return installer


def is_requested_python(python: Path, environ: Mapping[str, str]) -> bool:
    """Return False if PYTHON= is set and `.venv` has another Python than this process."""
    settings = python.parent.parent / "pyvenv.cfg"
    if not environ.get("PYTHON") or not settings.exists():
        return True
    found = re.search(r"^version\w* = (\d+)\.(\d+)", settings.read_text("utf-8"), re.MULTILINE)
    return found is not None and (int(found[1]), int(found[2])) == sys.version_info[:2]


def is_stamped(path: Path) -> bool:
    """Return whether the stamp has this file's hash, and `.venv` its Python and its command."""
    try:
        record = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    command = PYTHON.parent / "breakeven"
    return record.get(key(path)) == digest(path) and command.exists() and PYTHON.exists()


def key(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def count(locks: Sequence[Path]) -> int:
    lines = [line for lock in locks for line in lock.read_text(encoding="utf-8").splitlines()]
    return len({line.partition("==")[0] for line in lines if "==" in line})


def print_line(line: str) -> None:
    print(line, flush=True)


def exec_product(command: Sequence[str], stages: StartStages) -> None:
    """Replace this process by the product, which receives signals and sets the status."""
    environ = keeping_bytecode({**os.environ, **stages.exported()})
    os.execve(command[0], list(command), environ)


def compile_ahead() -> None:
    """Compile once what a first start and the usual commands import.

    Each process would otherwise compile it again. Import errors are ignored here: the module
    reports them when it is used.
    """
    for module in COMPILED:
        command = [str(PYTHON), "-c", f"import {module}"]
        subprocess.run(
            command, env=keeping_bytecode(os.environ), cwd=ROOT, check=False, capture_output=True
        )


def keeping_bytecode(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that keeps bytecode in `.venv` if not next to the sources.

    Without bytecode, each process of a run or a test compiles 1,000 modules, which doubles its CPU
    time.
    """
    kept = dict(environ)
    if kept.pop("PYTHONDONTWRITEBYTECODE", ""):
        kept.setdefault("PYTHONPYCACHEPREFIX", str(PYTHON.parent.parent / "bytecode"))
    return kept


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
