"""The process that forks: alone, with its one thread, and what it runs."""

import subprocess
import sys
import threading

from gateway.host.fork_server import has_threads


def test_threads_are_seen() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert has_threads()
    finally:
        stop.set()
        thread.join()
    code = "from gateway.host.fork_server import has_threads; print(has_threads())"
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert alone.stdout == b"False\n"
