"""A program that is forked is, for who started it, one that was started."""

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deploy import warmstart
from deploy.warmstart import WarmProgram, WarmPrograms

SAYS = """
import os, sys
print(__name__, sys.argv, os.getcwd(), sorted(os.environ), flush=True)
print("beside it", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
WAITS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("waits", flush=True)
while True:
    time.sleep(60)
"""


@pytest.fixture
def programs() -> WarmPrograms:
    return warmstart.programs()


def test_words_folder_environment_output_and_status_are_its_own(programs, tmp_path: Path) -> None:
    answer = programs.run(["3", "ä b"], folder=tmp_path, environ={"A": "1"}, program=SAYS)
    said = f"__main__ ['-c', '3', 'ä b'] {tmp_path} ['A']\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (3, said, "beside it\n")


def test_each_begins_as_the_first_did(programs) -> None:
    changes = "import gateway, os; print(hasattr(gateway, 'left')); gateway.left = os.chdir('/')"
    said = [programs.run([], program=changes).stdout for _ in range(2)]
    assert said == ["False\n", "False\n"]


def test_the_command_line_is_breakevens(programs) -> None:
    answer = programs.run(["keys", "list", "--config", "none.yaml"])
    assert answer.returncode == 1
    assert answer.stderr.startswith("breakeven: none.yaml: No such file or directory")
    assert programs.run(["--help"]).stdout.startswith("Usage: breakeven [OPTIONS]")


@pytest.mark.parametrize(
    ("end", "code"),
    [("terminate", 5), ("kill", -signal.SIGKILL), ("interrupt", -signal.SIGINT)],
)
def test_it_is_waited_for_and_sent_signals(programs, end: str, code: int) -> None:
    running = programs.open([], program=WAITS)
    assert running.stdout.readline() == "waits\n"
    assert running.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0)
    if end == "interrupt":
        running.send_signal(signal.SIGINT)
    else:
        getattr(running, end)()
    assert running.wait(30) == running.poll() == running.returncode == code
    running.kill()  # of nobody
    running.stdout.close()


def test_two_ends_are_told_apart(programs) -> None:
    """The one asked about last has ended first."""
    ends = "raise SystemExit({})".format
    first, second = (programs.start([], program=ends(code)) for code in (1, 2))
    assert second.wait(30) == 2
    assert first.wait(30) == 1


def test_who_asked_first_may_end_and_what_is_left_ends_with_the_tests() -> None:
    programs = WarmPrograms(imports_ahead=False)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(programs.run, [], program="print(1)").result().stdout == "1\n"
    running = programs.open([], program=WAITS)
    assert running.stdout.readline() == "waits\n"
    programs.close()
    assert running.stdout.read() == ""  # the last who could write there is gone
    running.stdout.close()


def test_a_host_is_given_its_environment_as_after_its_own_start(programs) -> None:
    """Python that is to begin otherwise cannot be forked."""
    assert warmstart.is_plain({**os.environ, "OPENAI_API_KEY": "x"})
    assert not warmstart.is_plain({**os.environ, "PYTHONPATH": "/elsewhere"})
    assert not warmstart.is_plain({**os.environ, "BREAKEVEN_PRELOAD": "0"})


@pytest.mark.parametrize(("more", "kind"), [({}, WarmProgram), ({"LD_X": "1"}, subprocess.Popen)])
def test_what_begins_otherwise_is_a_program_of_its_own(tmp_path: Path, more, kind) -> None:
    with (tmp_path / "said").open("wb") as file:
        running = warmstart.start_program(
            ["--version"], output=file.fileno(), folder=tmp_path, environ={**os.environ, **more}
        )
    assert isinstance(running, kind)
    assert running.wait(60) == 0
    assert (tmp_path / "said").read_text().startswith("breakeven ")
