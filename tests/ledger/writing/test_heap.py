"""Threads begin no heap of their own once a process has said so: in processes of their own."""

import subprocess
import sys

import pytest

from ledger.writing.heap import limit_heaps

# Six threads at once hold memory that they took; how many heaps the C library has for them.
THREADS = """
import ctypes, re, sys, tempfile, threading
from ledger.writing.heap import limit_heaps
if sys.argv[1] == "one":
    assert limit_heaps()
library = ctypes.CDLL(None)
library.malloc.restype, library.fdopen.restype = ctypes.c_void_p, ctypes.c_void_p
started, done = threading.Barrier(7), threading.Event()
def take():
    library.malloc(10_000)
    started.wait()
    done.wait()
threads = [threading.Thread(target=take) for _ in range(6)]
for thread in threads:
    thread.start()
started.wait()
with tempfile.NamedTemporaryFile("w+") as told:
    stream = ctypes.c_void_p(library.fdopen(told.fileno(), b"w"))
    library.malloc_info(0, stream)
    library.fflush(stream)
    told.seek(0)
    print(len(re.findall("<heap nr=", told.read())))
done.set()
"""


@pytest.mark.parametrize(("how", "least", "most"), [("one", 1, 1), ("each", 2, 99)])
def test_threads_share_one_heap(how, least, most) -> None:
    """The control: a process that has not said so has a heap for each of its threads."""
    command = [sys.executable, "-c", THREADS, how]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert least <= int(found.stdout) <= most


def test_another_c_library_is_told_by_its_answer() -> None:
    class Bare:
        pass

    assert not limit_heaps(Bare)
