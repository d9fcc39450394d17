"""Writes by io_uring: durable when they have ended, errors told, refused where a sandbox does."""

import ctypes
import errno
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.journals.uring import UringWrites

TRY = """
import sys
sys.path.insert(0, sys.argv[1])
from refuse_uring import refuse_uring
from ledger.journals.uring import UringWrites
refuse_uring()
try:
    UringWrites()
except PermissionError:
    print("refused")
"""


@pytest.fixture
def uring():
    try:
        made = UringWrites()
    except OSError as refused:
        pytest.skip(f"io_uring: {refused}")
    yield made
    made.close()


@pytest.fixture
def file(tmp_path):
    made = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield made
    os.close(made)


def test_each_write_is_there_when_its_end_is_told(uring, file) -> None:
    for number in range(20):  # more than the ring has entries
        data = ctypes.create_string_buffer(os.urandom(1000), 1000)
        uring.start_write(file, ctypes.addressof(data), 1000, 1000 * number)
        ready = select.poll()
        ready.register(uring.told, select.POLLIN)
        assert ready.poll(10_000)
        assert uring.ended(wait=False) == 1000
        assert os.pread(file, 1000, 1000 * number) == data.raw
        assert uring.ended(wait=False) is None


def test_one_can_wait_for_the_end(uring, file) -> None:
    data = ctypes.create_string_buffer(b"x" * 10, 10)
    uring.start_write(file, ctypes.addressof(data), 10, 5)
    assert uring.ended(wait=True) == 10
    assert os.pread(file, 20, 0) == bytes(5) + b"x" * 10


def test_an_error_is_a_number_below_zero(uring) -> None:
    data = ctypes.create_string_buffer(b"x" * 10, 10)
    with Path("/dev/full").open("wb") as full:
        uring.start_write(full.fileno(), ctypes.addressof(data), 10, 0)
        assert uring.ended(wait=True) == -errno.ENOSPC
    uring.start_write(10**6, ctypes.addressof(data), 10, 0)
    assert uring.ended(wait=True) == -errno.EBADF


def test_a_sandbox_that_refuses_it_is_told() -> None:
    said = subprocess.run(
        [sys.executable, "-c", TRY, str(Path(__file__).parent)], check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert said.stdout == "refused\n"
