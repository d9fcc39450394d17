"""A test that stands still is shown where it stands, by an alarm that many tests share."""

import subprocess
import sys
from pathlib import Path

PLUGIN = """
from deploy.stack_alarm import StackAlarm
def pytest_configure(config):
    config.pluginmanager.register(StackAlarm({limit_s}, {shared_s}))
"""
STANDS = "import time\n\ndef wait_for_nobody(): time.sleep({pause_s})\n"
TESTS = STANDS + "def test_fails(): assert 0\ndef test_slow(): wait_for_nobody()\n"


def run(folder: Path, root: Path, tests: str, **limits: float) -> str:
    (folder / "conftest.py").write_text(PLUGIN.format(**limits))
    (folder / "test_it.py").write_text(tests.format(pause_s=0.6))
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder, check=False, capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    return answer.stderr


def test_the_stack_is_shown_after_a_failure_too(pytestconfig, tmp_path: Path) -> None:
    said = run(tmp_path, pytestconfig.rootpath, TESTS, limit_s=0.2, shared_s=60)
    assert "in wait_for_nobody" in said


def test_an_alarm_of_long_ago_is_set_anew(pytestconfig, tmp_path: Path) -> None:
    tests = STANDS + "".join(f"def test_{each}(): time.sleep(0.3)\n" for each in "abcd")
    said = run(tmp_path, pytestconfig.rootpath, tests, limit_s=0.9, shared_s=0.2)
    assert not said
