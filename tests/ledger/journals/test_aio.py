"""The kernel's asynchronous fdatasync: begun, told of, counted."""

import errno
import os
import platform
import select

import pytest

from ledger.journals.aio import MOST, AioContext


@pytest.fixture
def aio():
    context = AioContext()
    yield context
    context.close()


def test_an_end_is_told_of_through_the_file(aio, tmp_path):
    file = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"x" * 5000)
    for _ in range(3):
        aio.fdatasync(file)
        assert select.select([aio.told], [], [], 10)[0]
        assert aio.reap_operations(wait=False) == [0]
        assert not select.select([aio.told], [], [], 0)[0]
    assert aio.reap_operations(wait=False) == []
    os.close(file)


def test_all_that_was_begun_ends(aio, tmp_path):
    file = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    ended = []
    for _ in range(MOST):
        aio.fdatasync(file)
    while len(ended) < MOST:
        ended += aio.reap_operations(wait=True)
    assert ended == [0] * MOST
    os.close(file)


def test_no_file_is_refused(aio):
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        aio.fdatasync(99_999)


def test_an_unknown_machine_is_said_to_have_none(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSYS)):
        AioContext()
