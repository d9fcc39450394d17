"""A forked process ends as Python would end it, for who waits for it and for what it has begun."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import atexit, concurrent.futures, sys, threading, time
from gateway.host.process_end import end_process

class Last:
    def __del__(self):
        sys.stdout.write(" taken apart ")

last = Last()
say = sys.stdout.write  # each word with its spaces: they come from several threads
atexit.register(say, " handler ")
threading.Thread(target=lambda: (time.sleep(0.2), say(" thread "))).start()
pool = concurrent.futures.ThreadPoolExecutor()
pool.submit(say, " pool ")
say(" unfinished line ")
{end}
"""


def ended(end: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", SCRIPT.format(end=end)]
    return subprocess.run(words, check=False, text=True, capture_output=True)


@pytest.mark.parametrize("code", ["None", "0", "3", "-1", "True", "'said'"])
def test_the_end_is_that_of_a_program_but_for_what_it_has_in_memory(code: str) -> None:
    quick, plain = ended(f"end_process({code})"), ended(f"sys.exit({code})")
    assert (quick.returncode, quick.stderr) == (plain.returncode, plain.stderr)
    assert sorted(quick.stdout.split()) == ["handler", "line", "pool", "thread", "unfinished"]
    assert plain.stdout.split()[-2:] == ["taken", "apart"], "the control"


def test_output_that_nobody_takes_is_told_as_python_tells_it() -> None:
    script = "import sys; from gateway.host.process_end import end_process; print(1); {}"
    environ = {key: word for key, word in os.environ.items() if key != "PYTHONUNBUFFERED"}
    for end in ("end_process(0)", "sys.exit(0)"):
        ours, theirs = os.pipe()
        os.close(ours)
        words = [sys.executable, "-c", script.format(end)]
        answer = subprocess.run(
            words, check=False, text=True, stdout=theirs, stderr=subprocess.PIPE, env=environ
        )
        os.close(theirs)
        assert answer.returncode == 120
        assert "BrokenPipeError" in answer.stderr


def test_a_command_without_streams_ends_well() -> None:
    assert ended("sys.stdout = sys.stderr = None; end_process(4)").returncode == 4
