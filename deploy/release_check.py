"""Checks before a release: `python -m deploy.release_check`, or `make release-check`.

The first check is that package, chart, changelog and the commands of the pages name one version.
Then each step runs in its own process: packages, bills of materials, site, chart with compose and
image file, every Python on this machine, the first hour. A table lists result and seconds of each
step. The exit status is 1 if a step failed, and 0 if each step passed or could not run here.
"""

import argparse
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
NOT_HERE: Final = 2  # exit status of a step that cannot run here, e.g. a port is taken
_WHEEL: Final = re.compile(r"breakeven-(\d[\w.]*?)-py3-none-any\.whl")
_IMAGE: Final = re.compile(r"/breakeven:(\d+\.\d[\w.]*)")
_HEADING: Final = re.compile(r"^## (\d[\w.]*)", re.MULTILINE)


class StepResult(StrEnum):
    """The result of a step."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_HERE = "could not run here"


class ReleaseStep(NamedTuple):
    """A step of the check, run as a process; `words` are the interpreter's arguments.

    `tells_lack`: exit status 2 means that this machine lacks something. Otherwise 2 is a failure.
    """

    name: str
    words: tuple[str, ...]
    tells_lack: bool = False


STEPS: Final = (
    ReleaseStep("dist", ("-m", "deploy.dist")),
    ReleaseStep("sbom", ("-m", "deploy.sbom")),
    ReleaseStep("docs", ("-m", "deploy.docsite.build")),
    ReleaseStep("deploy", ("-m", "pytest", "-q", "tests/deploy")),
    ReleaseStep("pythons", ("-m", "deploy.pythons"), tells_lack=True),
    ReleaseStep("first-hour", ("-m", "deploy.docsite.first_hour"), tells_lack=True),
)
VERSIONS: Final = "versions"


def named_versions(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each place that states a version of the product, with the version."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    yield "pyproject.toml", str(project["version"])
    chart = root / "deploy" / "helm" / "breakeven" / "Chart.yaml"
    for name in ("version", "appVersion"):
        yield (
            f"{chart.relative_to(root)} {name}",
            str(yaml.safe_load(chart.read_text("utf-8"))[name]),
        )
    newest = _HEADING.search((root / "CHANGELOG.md").read_text("utf-8"))
    yield "CHANGELOG.md", newest[1] if newest else "none"
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        text = page.read_text("utf-8")
        for named in (*_WHEEL.finditer(text), *_IMAGE.finditer(text)):
            yield str(page.relative_to(root)), named[1]


def version_faults(root: Path) -> list[str]:
    """Return a line for each place whose version differs from that of `pyproject.toml`."""
    (_, version), *others = named_versions(root)
    return [f"{place}: {named}, not {version}" for place, named in others if named != version]


def run_step(step: ReleaseStep) -> StepResult:
    """Run a step and return its result. Its output goes to this process's output."""
    status = subprocess.run([sys.executable, *step.words], cwd=ROOT, check=False).returncode
    if not status:
        return StepResult.PASSED
    is_lack = step.tells_lack and status == NOT_HERE
    return StepResult.NOT_HERE if is_lack else StepResult.FAILED


def check_release(
    names: Sequence[str], run: Callable[[ReleaseStep], StepResult] = run_step, root: Path = ROOT
) -> int:
    """Run the named steps (all if none) and print the table. Return the exit status."""
    lines: list[tuple[str, StepResult, float]] = []
    if not names or VERSIONS in names:
        faults = version_faults(root)
        print(*faults, sep="\n", end="\n" if faults else "")
        lines.append((VERSIONS, StepResult.FAILED if faults else StepResult.PASSED, 0.0))
    for step in STEPS:
        if names and step.name not in names:
            continue
        began = time.monotonic()
        lines.append((step.name, run(step), time.monotonic() - began))
    for name, result, seconds in lines:
        print(f"{name:12} {seconds:7.1f} s  {result}")
    return int(any(result is StepResult.FAILED for _, result, _ in lines))


def main(arguments: Sequence[str] | None = None) -> int:
    names = [VERSIONS, *(step.name for step in STEPS)]
    parser = argparse.ArgumentParser("deploy.release_check", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(names)}: all")
    given: list[str] = parser.parse_args(arguments).steps
    if unknown := [name for name in given if name not in names]:
        parser.error(f"no step is called {', '.join(unknown)}: take {', '.join(names)}")
    return check_release(given)


if __name__ == "__main__":
    sys.exit(main())
