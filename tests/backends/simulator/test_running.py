"""The command line: free ports that are said, several servers in one process, a clean end."""

import re
import signal
import subprocess
import sys
import urllib.request

import pytest


def started(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (("backends.simulator.server", "--port", "0", "--max-num-seqs", "4"), 1),
        (("backends.simulator.provider", *(2 * ("--name", "a", "--port", "0"))), 2),
    ],
)
def test_servers_say_where_they_are_and_end_on_sigterm(arguments, count):
    process = started(*arguments)
    try:
        urls = [re.search(r"http://\S+", process.stdout.readline())[0] for _ in range(count)]
        for url in urls:
            with urllib.request.urlopen(f"{url}/models", timeout=10) as answer:
                assert answer.headers["x-simulated"] == "breakeven-simulator"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert errors == ""


def test_a_port_for_each_name_is_needed():
    process = started("backends.simulator.provider", "--name", "a", "--name", "b", "--port", "0")
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "one --port for each --name" in errors
