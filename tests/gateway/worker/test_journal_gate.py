"""A journal that takes no new work: unready, said once per change, and over by itself."""

import errno
import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.worker.journal_gate import JournalGate
from ledger.writing.lag import WriterLag, write_lag


def test_each_change_is_logged_once(caplog) -> None:
    reasons = iter([None, "disk full", "disk full", "disk full", None, None])
    recording = JournalGate(SimpleNamespace(refusal=lambda: next(reasons)), Path("nowhere"))
    with caplog.at_level(logging.WARNING):
        taken = [recording.is_open() for _ in range(6)]
    assert taken == [True, False, False, False, True, True]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "disk full" in told[0]
    assert "again" in told[1]


@pytest.mark.parametrize("is_full", [True, False])
def test_readiness_follows_the_disk(stack, monkeypatch, is_full) -> None:
    """Where `is_full` is false nothing is changed: the control."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert stack.chat("own", max_tokens=2).status_code == 200
    journal = next(stack.runtime.journal_dir.glob("v2/worker-0-*"))
    real = os.write

    def write(file, data):
        name = str(Path(f"/proc/self/fd/{file}").readlink())
        return full() if name.startswith(str(journal)) else real(file, data)

    if is_full:
        monkeypatch.setattr(os, "write", write)
        monkeypatch.setattr(os, "posix_fallocate", full)
    status = 503 if is_full else 200
    assert stack.chat("own", max_tokens=2).status_code == status
    ready = stack.get("/readyz")
    assert (ready.status_code, ready.json()["missing"]) == (status, ["journal"] * is_full)
    monkeypatch.undo()
    assert stack.get("/readyz").status_code == 200
    assert stack.chat("own", max_tokens=2).status_code == 200


def test_a_journal_that_cannot_be_read_on_makes_a_host_unready_and_says_why(tmp_path) -> None:
    gate = JournalGate(SimpleNamespace(refusal=lambda: None), tmp_path)
    assert gate.stalled() is None  # no ledger writer ever ran
    for why in ("journal w0-a cannot be read on: Input/output error", None):
        write_lag(tmp_path, WriterLag(0, 0, False, 0, stalled=why))
        assert gate.stalled() == why
