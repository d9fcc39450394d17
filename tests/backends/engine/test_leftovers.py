"""What a killed guard leaves is ended by its record; whoever merely got a used id is not."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from backends.engine import process as starting
from backends.engine.environment import CpuOptions
from backends.engine.guard import boot_id, processes
from backends.engine.leftovers import kill_leftovers
from backends.engine.process import EngineProcess, tree_of


def alive(pid: int) -> bool:
    found = processes().get(pid)
    return found is not None and not found.is_gone


@pytest.fixture
def sleeper():
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    yield process.pid
    process.kill()
    process.wait()


def record(tree, pid, *, start=None, boot=None):
    seen = processes()
    own = seen[os.getpid()]
    tree.write_text(
        f"{boot or boot_id()}\n1 {seen[1].start + 1} {own.session}\n"
        f"{pid} {seen[pid].start if start is None else start} {pid}"
    )


@pytest.mark.parametrize(
    ("changes", "is_ended"), [({}, True), ({"start": 7}, False), ({"boot": "another"}, False)]
)
def test_only_who_was_recorded_is_ended(tmp_path, sleeper, changes, is_ended):
    tree = tmp_path / "log.tree"
    record(tree, sleeper, **changes)
    assert kill_leftovers(tree) == []
    assert alive(sleeper) is not is_ended
    assert not tree.exists()


async def started(fake_spec, tmp_path):
    """The engine, and its worker, which has a session of its own and is in the record."""
    launch = fake_spec().launch
    words = [str(launch.environment.python), "-m", "x", "serve", str(launch.model)]
    process = await EngineProcess.start(words, launch, log=tmp_path / "log", cpu=CpuOptions())
    pid_file, tree = launch.model.parent / "worker.pid", tree_of(tmp_path / "log")

    def is_recorded():
        both = pid_file.exists() and tree.exists() and pid_file.read_text()
        return both and f"\n{both} " in tree.read_text()

    async with asyncio.timeout(20):
        while not is_recorded():  # noqa: ASYNC110  (another process writes it)
            await asyncio.sleep(0.02)
    return process, int(pid_file.read_text())


async def test_a_killed_guard_leaves_nothing(fake_spec, tmp_path):
    process, worker = await started(fake_spec, tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
    assert not alive(worker)
    assert process.cause(-9) == "its guard was ended by signal 9 (Killed)"


async def test_without_the_record_the_worker_is_orphaned_until_the_next_start(
    fake_spec, tmp_path, monkeypatch
):
    """The control, and a parent that was killed together with the guard."""
    process, worker = await started(fake_spec, tmp_path)
    monkeypatch.setattr(starting, "kill_leftovers", lambda *_, **__: [])
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    assert alive(worker)
    monkeypatch.undo()
    assert kill_leftovers(tree_of(tmp_path / "log")) == []
    assert not alive(worker)
