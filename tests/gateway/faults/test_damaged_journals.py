"""One bit of a frame's length is wrong: a whole host loses that row alone, says so, and goes on."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from deploy import warmstart
from ledger.journals.homes import FOLDER, JournalSource, segments
from ledger.journals.reader import JournalOffset, JournalReader


def ledger(host, *words: str) -> subprocess.CompletedProcess[str]:
    told = ["ledger", *words, "--json", "--config", host.config]
    return warmstart.programs().run(told, environ=host.environ)


def damage(host, first: int) -> None:
    """Turn 524,288 of the length of the frame in the middle of those that are not applied."""
    (home,) = (host.state / "journal" / FOLDER).iterdir()
    journal = JournalSource(home.name, "worker-0", home)
    chunk = JournalReader(host.state / "journal").read(journal, JournalOffset())
    frames = [frame for frame in chunk.frames if frame.start >= first]
    (path,) = segments(journal)
    with path.open("r+b") as file:
        place = frames[len(frames) // 2].start + 6
        (byte,) = os.pread(file.fileno(), 1, place)
        os.pwrite(file.fileno(), bytes([byte ^ 8]), place)


def journal_size(host) -> int:
    return sum(path.stat().st_size for path in (host.state / "journal").glob("v2/*/*.segment"))


def finished(host) -> int:
    return len(host.rows("status = 'finished'"))


@pytest.fixture
def host(make_host, patiently):
    """One worker whose rows so far are in the books, its ledger writer stopped."""
    host = make_host(workers=1, engines=1)
    host.start()
    patiently(lambda: finished(host) == host.answered, 40)
    (writer,) = host.pids("ledger.writer")
    os.kill(writer, signal.SIGSTOP)
    host.writer = writer
    return host


def test_with_the_host_down(host, patiently) -> None:
    first = journal_size(host)
    for _ in range(40):
        assert host.ask().status_code == 200
    host.kill_all()
    damage(host, first)
    host.start()
    patiently(lambda: finished(host) == host.answered - 1, 40)
    log = (host.state / "logs" / "ledger-writer.log").read_text()
    assert "a journal is damaged" in log
    patiently(lambda: host.metric("breakeven_journal_findings") >= 1, 20)
    assert host.get("/readyz").status_code == 200
    verified = ledger(host, "verify")
    assert verified.returncode == 1
    found = {finding["check"] for finding in json.loads(verified.stdout)["findings"]}
    assert found <= {"journals_are_whole", "nothing_is_quarantined"}
    assert "journals_are_whole" in found
    assert ledger(host, "acknowledge", "--all", "--note", "a bad disk").returncode == 0
    assert ledger(host, "verify").returncode == 0
    patiently(lambda: host.metric("breakeven_journal_findings") == 0, 20)
    assert Path(json.loads(ledger(host, "salvage").stdout)["sources"][0]["source"]).exists()
    assert host.terminate() == 0


def test_with_the_host_alive(host, patiently) -> None:
    first = journal_size(host)
    for _ in range(20):
        assert host.ask().status_code == 200
    damage(host, first)
    os.kill(host.writer, signal.SIGCONT)
    for _ in range(60):
        assert host.ask().status_code == 200
    patiently(lambda: finished(host) == host.answered - 1, 40)
    patiently(lambda: host.metric("breakeven_journal_findings") >= 1, 20)
    assert host.get("/readyz").status_code == 200
    assert ledger(host, "verify").returncode == 1
    assert host.terminate() == 0
