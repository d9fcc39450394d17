"""A journal that takes no new work: unready, said once per change, and over by itself."""

import asyncio
import errno
import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from gateway.telemetry.metrics.requests import RequestMetrics
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


WAYS = {  # of workers: asked for, theirs, why
    "as asked": ("kernel", "kernel", None),
    "io_uring refused": ("kernel", "thread", "io_uring: Operation not permitted"),
    "no memory to map": ("kernel", "calls", "no memory can be mapped safely in /journal"),
}


@pytest.mark.parametrize("name", WAYS)
async def test_a_way_that_was_not_asked_for_is_logged_once_and_shown(caplog, name) -> None:
    asked, way, why = WAYS[name]
    attached, metrics = [], RequestMetrics(CollectorRegistry(), models=(), targets=())
    journal = SimpleNamespace(
        attach=lambda *given: attached.append(given), way=way, way_refused=why, refusal=lambda: None
    )
    gate = JournalGate(journal, Path("nowhere"))
    with caplog.at_level(logging.INFO, logger="breakeven.recording"):
        gate.attach(asked, metrics.journal_writes)
        gate.is_open()
    assert attached == [(asyncio.get_running_loop(), asked)]
    shown = metrics.journal_writes.collect()[0].samples
    assert {sample.labels["way"]: sample.value for sample in shown} == {
        each: float(each == way) for each in ("kernel", "thread", "calls")
    }
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == (why is not None)
    assert all(why in line and "ledger.journal_writes" in line for line in told)


def test_ends_that_wait_for_room_are_shown_and_those_given_up_counted(caplog) -> None:
    metrics = RequestMetrics(CollectorRegistry(), models=(), targets=())
    owed = SimpleNamespace(waiting=[b"1", b"2"], lost=0)
    gate = JournalGate(SimpleNamespace(owed=owed), Path("nowhere"))
    for owed.lost in (0, 3, 3):
        gate.show_owed(metrics.endings_waiting, metrics.endings_lost)
    assert metrics.endings_waiting.collect()[0].samples[0].value == 2
    assert metrics.endings_lost.collect()[0].samples[0].value == 3
    assert len(caplog.records) == 1


def test_a_host_shows_the_way_of_its_workers(stack) -> None:
    told = stack.get("/metrics").text
    ways = [line for line in told.splitlines() if line.startswith("breakeven_journal_writes{")]
    assert sorted(line.rpartition(" ")[2] for line in ways) == ["0.0", "0.0", "1.0"]


def test_readiness_follows_the_disk(run_stack, monkeypatch) -> None:
    """A loop that writes by itself hears of a full disk at once; while nothing is changed, none."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with run_stack(ledger={"journal_writes": "calls"}) as stack:
        assert stack.chat("own", max_tokens=2).status_code == 200
        journal = next(stack.runtime.journal_dir.glob("v2/worker-0-*"))
        real = os.write

        def write(file, data):
            name = str(Path(f"/proc/self/fd/{file}").readlink())
            return full() if name.startswith(str(journal)) else real(file, data)

        for is_full in (False, True):
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
