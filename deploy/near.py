"""The tests that belong to a file: `make near FILE=router/filters.py`.

These are the file's mirrored tests, and those of every file that imports it directly. Each failing
test prints one line. After 45 s no further test begins, and a line says how many were left out.
Real parts are not installed: tests that need a missing part are skipped without a message.
"""

import ast
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("router", "ledger", "backends", "gateway", "dashboard", "deploy")
LIMIT_S = 45.0  # with start and last test, the command takes 60 s
PARTIAL_STATUS = 3  # exit status: no test failed, but some did not run
LINE = 160  # maximum characters of a failure's text
QUIET = (
    "-qq", "--tb=short", "--no-header", "--no-summary", "--continue-on-collection-errors",
    "-p", "no:cacheprovider",
)  # fmt: skip


def module_of(name: str) -> str:
    """Return the module name of a path: router/filters.py is router.filters."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def importers(root: Path, name: str) -> list[str]:
    """Return the files of the product that import this file, those of its own package first."""
    module = module_of(name)
    last = re.compile(rf"\b{re.escape(module.rpartition('.')[2])}\b")
    found = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if last.search(text) and module in imported_modules(ast.parse(text)):
                found.append(path.relative_to(root).as_posix())
    package = name.partition("/")[0]
    found = [each for each in found if each != name]
    return sorted(found, key=lambda each: (each.partition("/")[0] != package, each))


def imported_modules(tree: ast.Module) -> set[str]:
    """Return every module that the file's import statements can refer to."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def tests_of(root: Path, name: str) -> list[str]:
    """Return the mirrored test file and those that continue its name. A test returns itself."""
    path = Path(name)
    if path.parts[0] == "tests":
        own = path.name.startswith("test_")
        return [name] if own else _that_name(root, path)
    folder = root / "tests" / path.parent
    files = [folder / f"test_{path.name}", *sorted(folder.glob(f"test_{path.stem}_*.py"))]
    continued = {f"test_{other.name}" for other in (root / path.parent).glob(f"{path.stem}_*.py")}
    return [
        each.relative_to(root).as_posix()
        for each in files
        if each.exists() and each.name not in continued
    ]


def _that_name(root: Path, path: Path) -> list[str]:
    """Return the tests of a folder that import this support file of the tests."""
    found = [
        each
        for each in sorted((root / path.parent).rglob("test_*.py"))
        if path.stem in imported_modules(ast.parse(each.read_text(encoding="utf-8")))
    ]
    return [each.relative_to(root).as_posix() for each in found]


def tests_near(root: Path, name: str) -> list[str]:
    """Return the tests of the file first, then those of its importers."""
    files = tests_of(root, name)
    if not name.startswith("tests/"):
        files += [test for each in importers(root, name) for test in tests_of(root, each)]
    return list(dict.fromkeys(files))


class NearReport:
    """A pytest plugin: one line per failure and a summary. No test begins after `limit_s`."""

    def __init__(
        self, limit_s: float, clock: Callable[[], float], say: Callable[[str], None]
    ) -> None:
        self._began_s = clock()
        self._limit_s, self._clock, self._say = limit_s, clock, say
        self._left_out = 0
        self.failed: dict[str, None] = {}
        self.counts = {"passed": 0, "skipped": 0}

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Print no dots for finished tests."""
        when = getattr(report, "when", None)
        return None if when is None else (report.outcome, "", "")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._fail(report.nodeid, report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._fail(report.nodeid, report)
        elif report.when == "call" or report.skipped:
            self.counts[report.outcome] += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Return True to leave the test out, once the time limit has passed."""
        late = self._clock() - self._began_s > self._limit_s
        self._left_out += late
        return late or None

    @property
    def is_partial(self) -> bool:
        """Return whether tests were left out, so that their outcome is unknown."""
        return self._left_out > 0

    def summary(self) -> list[str]:
        took_s = self._clock() - self._began_s
        counted = {"failed": len(self.failed), **self.counts}
        words = [f"{count} {word}" for word, count in counted.items() if count]
        lines = [f"{', '.join(words) or 'no tests'} in {took_s:.0f} s"]
        if self._left_out:
            lines.append(
                f"NOT ALL: {self._left_out} more were left out after {self._limit_s:.0f} s, "
                "so this is not a pass"
            )
        if self.failed:
            lines.append(f"whole: .venv/bin/python -m pytest '{next(iter(self.failed))}'")
        return lines

    def _fail(self, name: str, report: pytest.CollectReport | pytest.TestReport) -> None:
        if name not in self.failed:
            self.failed[name] = None
            self._say(f"{name}: {reason_of(report)}"[: len(name) + LINE])


def reason_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return the report's line that names the failure: the first, or the last of a trace."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr)
    lines = [line.removeprefix("E ").strip() for line in text.splitlines()]
    said = [line for line in lines if line]
    if crash is None and said:
        return said[-1]  # the last line of a trace
    return said[0] if said else "failed"


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("say which: make near FILE=router/filters.py", file=sys.stderr)
        return 2
    files: list[str] = []
    for word in arguments:
        path = (ROOT / word).resolve()
        if not path.is_file() or not path.is_relative_to(ROOT):
            print(f"no such file: {word}", file=sys.stderr)
            return 2
        files += tests_near(ROOT, path.relative_to(ROOT).as_posix())
    chosen = list(dict.fromkeys(files))
    if not chosen:
        print(f"no tests belong to {' '.join(arguments)}", file=sys.stderr)
        return 2
    print(f"{len(chosen)} test files: {' '.join(chosen)}", flush=True)
    report = NearReport(LIMIT_S, time.monotonic, lambda line: print(line, flush=True))
    status = pytest.main([*QUIET, f"--rootdir={ROOT}", *chosen], plugins=[report])
    for line in report.summary():
        print(line)
    return int(status) or (PARTIAL_STATUS if report.is_partial else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
