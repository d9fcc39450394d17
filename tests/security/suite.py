"""Goals that tests prove already: they are run, counted, and not written a second time.

A control is a test, too: it plants the fault and fails unless the fault shows. Its figure is how
many of them found theirs.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from case import Case, CaseFigures, Given, MissingPart
from parts import ROOT

TOLD = 300  # characters of why a test failed


def proved(goal: str, figure: str, tests: list[str], controls: list[str]) -> Case:
    """Failing tests among `tests`; `controls` are found red when all of them pass."""

    def play(given: Given) -> CaseFigures:
        if not given.broken:
            ran, failed, names = _run(tests)
            return CaseFigures(len(failed), f"{ran} tests", tuple(names))
        ran, failed, _ = _run(controls)
        return CaseFigures(0 if failed else ran, f"{ran} planted faults, each found")

    return Case(goal, figure, play, f"{len(controls)} tests with a planted fault")


def _run(tests: list[str]) -> tuple[int, list[str], list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "junit.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]
        command += ["-m", "long or not long"]  # a goal is played whole
        done = subprocess.run(
            [*command, f"--junitxml={path}", *tests],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not path.exists():
            raise RuntimeError(
                f"the tests did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        cases = list(ET.parse(path).iter("testcase"))
    skipped = [case for case in cases if case.find("skipped") is not None]
    if cases and len(skipped) == len(cases):
        raise MissingPart(str(skipped[0].find("skipped").get("message")))
    failed = [case.get("name", "") for case in cases if _why(case) is not None]
    ran = len(cases) - len(skipped)
    faults = [f"failed: {case.get('name')}: {why}" for case in cases if (why := _why(case))] or (
        [] if ran else ["no test ran"]
    )
    return ran, failed, faults


def _why(case: ET.Element) -> str | None:
    """The beginning of what was said where it failed."""
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            return " ".join(found.get("message", "").split())[:TOLD] or kind
    return None
