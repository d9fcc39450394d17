"""GPUs are asked about again and again; where no answer comes the last note grows old."""

import asyncio
import os
import stat
from contextlib import suppress
from pathlib import Path

from gateway.clock import Clock
from gateway.fleet.gpu_notes import read_gpu_note
from gateway.host.gpu_watch import watch_gpus


async def test_every_answer_is_noted_and_none_leaves_the_last(tmp_path: Path, monkeypatch) -> None:
    smi, asked = tmp_path / "nvidia-smi", tmp_path / "asked"
    # Answers twice, then never again.
    smi.write_text(
        f"#!/bin/sh\necho x >> {asked}\n"
        f'[ $(wc -l < {asked}) -le 2 ] && echo "0, 1024, 2048, $(wc -l < {asked}), 0x0"\n'
    )
    smi.chmod(smi.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    now = iter(range(1_000))
    task = asyncio.ensure_future(
        watch_gpus(tmp_path, Clock(now_s=lambda: 0.0, wall_us=lambda: next(now)), every_s=0.01)
    )
    async with asyncio.timeout(30):
        while not asked.exists() or len(asked.read_text().split()) < 6:  # noqa: ASYNC110  (a program of its own writes it)
            await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    note = read_gpu_note(tmp_path)
    assert note is not None
    assert note.at_us == 1
    assert note.gpus[0].temperature_c == 2
