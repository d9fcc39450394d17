"""A second run of failed tests, once, alone on the machine, and always reported.

A suite of thousands of tests with real processes on two shared cores meets pauses that no timeout
of a test can foresee. The few failures of a large run are therefore run again with nothing else
running. A test that fails again stays failed. A test that passes is reported as unsteady, with its
first failure in full: that is a defect of its own to be fixed. Many failures at once are not caused
by a pause and stay failed; so does every failure in a run of selected tests.
"""

import subprocess
import sys

import pytest

FEW = 3
LARGE = 1000


class SecondLook:
    """Second run of failed tests, if at least `large` tests ran and at most `few` failed."""

    def __init__(self, *, large: int = LARGE, few: int = FEW) -> None:
        self._large = large
        self._few = few
        self._ran: set[str] = set()
        self._failed: dict[str, None] = {}  # in order of failure
        self._unsteady: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._ran.add(report.nodeid)
        if report.failed:
            self._failed[report.nodeid] = None

    @pytest.hookimpl(tryfirst=True)  # before the summary is written
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        whole = exitstatus == pytest.ExitCode.TESTS_FAILED and not session.shouldfail  # set by -x
        if not whole or len(self._ran) < self._large or len(self._failed) > self._few:
            return
        marked = ["-m", session.config.option.markexpr]  # or one might be deselected
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *marked]
        command += self._failed
        again = subprocess.run(command, cwd=session.config.rootpath, check=False)
        if again.returncode == pytest.ExitCode.OK:
            self._unsteady = list(self._failed)
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._unsteady:
            terminalreporter.section("UNSTEADY: failed beside others, passed alone", red=True)
            for name in self._unsteady:
                terminalreporter.write_line(name, red=True)
