"""A bench is ended while a gateway of it is stopped: nothing of it stays behind."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

STARTED = """
import os, signal, subprocess, sys, time
sys.path.insert(0, {here!r})
import children
with children.ended_by_signals():
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = {start}
    try:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)  # until it is
        print(child.pid, flush=True)
        time.sleep(600)
    finally:
        {ending}
"""
CARED, PLAIN = "children.start(words, cores=os.sched_getaffinity(0))", "subprocess.Popen(words)"
RESUMED = "child.send_signal(signal.SIGCONT); children.end(child, grace_s=5)"


def _ends(watched: int) -> bool:
    """A process's file is readable when it has ended."""
    return bool(select.select([watched], [], [], 10)[0])


@pytest.mark.parametrize(
    ("start", "number", "code"),
    [
        (CARED, signal.SIGTERM, 128 + signal.SIGTERM),
        (CARED, signal.SIGINT, 128 + signal.SIGINT),
        (CARED, signal.SIGHUP, 128 + signal.SIGHUP),
        (CARED, signal.SIGKILL, -signal.SIGKILL),
        (PLAIN, signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_no_stopped_process_stays_behind(start: str, number: int, code: int) -> None:
    """A plain child of a bench that is killed does stay: the control."""
    here = str(Path(__file__).parent)
    source = STARTED.format(here=here, start=start, ending=RESUMED)
    bench = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert bench.stdout is not None
    child = int(bench.stdout.readline())
    watched = os.pidfd_open(child)
    try:
        bench.send_signal(number)
        assert bench.wait(30) == code
        bench.stdout.close()
        if start == PLAIN:
            os.kill(child, 0)
            assert "T (stopped)" in Path(f"/proc/{child}/status").read_text()
            signal.pidfd_send_signal(watched, signal.SIGKILL)
        assert _ends(watched)
    finally:
        os.close(watched)
