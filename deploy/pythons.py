"""Install the product on each Python of this machine and run a short tier of tests there.

`make test-pythons` runs it. Every supported Python on PATH is tried, or those that the arguments
name. Each gets its own environment in build/pythons/, made from the lock files alone, and runs
`TIER`: real processes, forks, journals, both sides of HTTP, the dashboard, the wheel. The run ends
with a table. The exit status is 1 if anything failed or nothing could be tried. Only the standard
library is used, because this module runs before anything is installed.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from deploy.bootstrap import PRODUCT, TESTS
from deploy.installer import BootstrapError, find_installer, make_environment

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")  # pyproject.toml states the same for pip
PLACE = ROOT / "build" / "pythons"
LANES = "2"
NAMED = 10  # maximum of failed tests that are printed; the log has all
ASK = "import sys; print(sys.version.split()[0])"
TIER = (
    "tests/backends/test_base.py",
    "tests/backends/test_http.py",
    "tests/dashboard/page/test_budgets.py",
    "tests/dashboard/test_start.py",
    "tests/deploy/test_wheel.py",
    "tests/gateway/cli/test_lazy_commands.py",
    "tests/gateway/config/test_schema.py",
    "tests/gateway/content/test_text_scanner.py",
    "tests/gateway/demo/test_start.py",
    "tests/gateway/diagnosis/test_machine.py",
    "tests/gateway/host/test_fork_server.py",
    "tests/gateway/host/test_process_end.py",
    "tests/gateway/host/test_serve.py",
    "tests/gateway/request/test_inference_api.py",
    "tests/gateway/sound/test_confinement.py",
    "tests/gateway/sound/test_decoded_sound.py",
    "tests/gateway/whatif/test_confined.py",
    "tests/gateway/worker/test_app.py",
    "tests/ledger/journals/test_journal.py",
    "tests/ledger/orm",
    "tests/router/test_decide_properties.py",
    "tests/router/test_snapshot_codec.py",
)


class Interpreter(NamedTuple):
    """A Python of this machine; `version` is complete, for example "3.14.1"."""

    path: Path
    version: str

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])


class TierCounts(NamedTuple):
    """Counts of the tier's tests by outcome, and the names of the failed tests."""

    passed: int = 0
    failed: tuple[str, ...] = ()
    skipped: int = 0


class PythonResult(NamedTuple):
    """A row of the table. Times are in seconds; `problem` is empty if nothing failed."""

    version: str
    path: str = ""
    install_s: float | None = None
    tests_s: float | None = None
    counts: TierCounts | None = None
    problem: str = ""


class UnsuitableError(Exception):
    """A named Python that cannot be tried; the message says why."""


def ask_version(path: str) -> str | None:
    """Return the version that an interpreter reports, None if it does not run."""
    try:
        answer = subprocess.run([path, "-c", ASK], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def find_interpreters(
    named: Sequence[str], ask: Callable[[str], str | None] = ask_version
) -> list[Interpreter]:
    """Return the named Pythons, or else the supported ones on PATH, oldest version first.

    Raises `UnsuitableError` when a Python does not run, is not supported or is named twice.
    """
    found: dict[str, Interpreter] = {}
    for name in named or [f"python{version}" for version in SUPPORTED]:
        path = shutil.which(name)
        version = ask(path) if path else None
        if path is None or version is None:
            if named:
                raise UnsuitableError(
                    f"{name} does not run: name interpreters, as in PYTHONS=python3.12"
                )
            continue
        interpreter = Interpreter(Path(path), version)
        if interpreter.minor not in SUPPORTED:
            raise UnsuitableError(
                f"{name} is Python {version}: supported are {', '.join(SUPPORTED)}"
            )
        if interpreter.minor in found:
            raise UnsuitableError(
                f"{name} is a second Python {interpreter.minor}: name one of each"
            )
        found[interpreter.minor] = interpreter
    return [found[version] for version in SUPPORTED if version in found]


def read_counts(report: Path) -> TierCounts:
    """Read pytest's JUnit file.

    Raises `OSError` when the file is missing, `ParseError` when it is incomplete.
    """
    cases = list(ET.parse(report).getroot().iter("testcase"))
    outcomes = [{child.tag for child in case} for case in cases]
    failed = tuple(
        f"{case.get('classname')}::{case.get('name')}"
        for case, outcome in zip(cases, outcomes, strict=True)
        if outcome & {"failure", "error"}
    )
    skipped = sum("skipped" in outcome for outcome in outcomes)
    return TierCounts(len(cases) - len(failed) - skipped, failed, skipped)


def plain_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables of Python and CI.

    `PYTHONDONTWRITEBYTECODE` is kept. With CI, the tests would require every real part.
    """
    return {
        name: value
        for name, value in environ.items()
        if name != "CI" and (not name.startswith("PYTHON") or name == "PYTHONDONTWRITEBYTECODE")
    }


def try_python(interpreter: Interpreter, tier: Sequence[str] = TIER) -> PythonResult:
    """Install the product for one Python and run the tier of tests there."""
    place = PLACE / interpreter.minor
    python = place / "bin" / "python"
    row = PythonResult(interpreter.version, str(interpreter.path))
    started = time.monotonic()
    try:
        make_environment(python, interpreter.path)
        installer = find_installer(python)
        installer.install(python, [*PRODUCT, *TESTS])
        installer.install_project(python)
    except BootstrapError as error:
        return row._replace(install_s=time.monotonic() - started, problem=str(error))
    row = row._replace(install_s=time.monotonic() - started)
    report, log = place / "tests.xml", place / "tests.log"
    report.unlink(missing_ok=True)
    started = time.monotonic()
    with log.open("wb") as file:
        status = subprocess.run(
            [
                str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", LANES,
                "--junitxml", str(report), *tier,
            ],
            cwd=ROOT, env=plain_environ(os.environ), stdout=file, stderr=file, check=False,
        ).returncode  # fmt: skip
    row = row._replace(tests_s=time.monotonic() - started)
    try:
        row = row._replace(counts=read_counts(report))
    except (OSError, ET.ParseError):
        return row._replace(problem=f"pytest ended with {status}: {log.relative_to(ROOT)}")
    return row._replace(problem=f"see {log.relative_to(ROOT)}" if status else "")


def format_table(rows: Sequence[PythonResult]) -> list[str]:
    """Return the lines of the table: one row for each supported Python, tried or not."""
    tried = {".".join(row.version.split(".")[:2]): row for row in rows}
    lines = [
        f"{'Python':<9}{'install':>9}{'tests':>9}{'passed':>8}{'failed':>8}{'skipped':>9}  result"
    ]
    for version in SUPPORTED:
        row = tried.get(version)
        if row is None:
            lines.append(f"{version:<9}{'-':>9}{'-':>9}{'-':>8}{'-':>8}{'-':>9}  not tried")
            continue
        counts = row.counts
        numbers = (counts.passed, len(counts.failed), counts.skipped) if counts else ("-",) * 3
        words = "failed: " + row.problem.splitlines()[0] if row.problem else f"ok, {row.path}"
        lines.append(
            f"{row.version:<9}{_seconds(row.install_s):>9}{_seconds(row.tests_s):>9}"
            f"{numbers[0]:>8}{numbers[1]:>8}{numbers[2]:>9}  {words}"
        )
    return lines


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"


def run_all(interpreters: Sequence[Interpreter]) -> Iterator[PythonResult]:
    """Try each Python. Print progress and the names of failed tests; yield the results."""
    for interpreter in interpreters:
        print(f"== Python {interpreter.version}: {interpreter.path}", flush=True)
        row = try_python(interpreter)
        for name in row.counts.failed[:NAMED] if row.counts else ():
            print(f"   failed: {name}", flush=True)
        if row.problem:
            print(f"   {row.problem}", flush=True)
        yield row


def main(named: Sequence[str]) -> int:
    try:
        interpreters = find_interpreters(named)
    except UnsuitableError as error:
        print(f"breakeven: {error}", file=sys.stderr)
        return 2
    rows = list(run_all(interpreters))
    print("\n".join(format_table(rows)))
    return 1 if not rows or any(row.problem for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
