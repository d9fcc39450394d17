"""What a driver tells about GPUs, by a program in the place of nvidia-smi, also one that hangs."""

import asyncio
import os
import signal
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from backends.engine.gpu_status import GpuReader, GpuStatus


@pytest.fixture
def driver(tmp_path: Path, monkeypatch):
    def install(script: str) -> None:
        smi = tmp_path / "nvidia-smi"
        smi.write_text(f"#!/bin/sh\n{script}\n")
        smi.chmod(smi.stat().st_mode | stat.S_IXUSR)

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return install


GIB = 1 << 30


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        ("0x0000000000000000", ()),
        ("0x0000000000000001", ()),  # idle
        ("0x0000000000000004", ("power_cap",)),
        ("0x0000000000000060", ("thermal",)),
        ("0x00000000000000A8", ("hardware", "thermal", "power_brake")),
        ("[N/A]", None),
    ],
)
async def test_each_reason_of_the_mask_is_named(driver, mask, reasons) -> None:
    driver(f"echo '0, 2048, 143771, 41, {mask}'")
    told = await GpuReader(5.0).read()
    assert told == [GpuStatus("0", 2 * GIB, 143771 << 20, 41, reasons)]


async def test_what_a_gpu_does_not_tell_is_unknown(driver) -> None:
    driver("printf '0, [N/A], [N/A], [N/A], [N/A]\\n1, 1024, 2048, 99, 0x20\\n'")
    assert await GpuReader(5.0).read() == [
        GpuStatus("0", None, None, None, None),
        GpuStatus("1", GIB, 2 * GIB, 99, ("thermal",)),
    ]


async def test_an_older_driver_is_asked_by_the_older_name(driver) -> None:
    driver(
        'case "$1" in *clocks_event*) echo "Field x is no valid field to query."; exit 2;;\n'
        "*) echo '0, 1024, 2048, 50, 0x4';; esac"
    )
    assert await GpuReader(5.0).read() == [GpuStatus("0", GIB, 2 * GIB, 50, ("power_cap",))]


@pytest.mark.parametrize(
    "words",
    [
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.",
        "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.",
        "",
    ],
)
async def test_an_error_is_no_answer(driver, words) -> None:
    driver(f"printf '0, 1024, 2048, 50, 0x0\\n' >/dev/null; echo '{words}'; exit 9")
    assert await GpuReader(5.0).read() is None


async def test_one_lost_gpu_makes_the_whole_answer_none(driver) -> None:
    """A part of the host's GPUs would look as if the others were gone on purpose."""
    driver("printf '0, 1024, 2048, 50, 0x0\\nGPU 00000000:01:00.0: GPU is lost\\n'")
    assert await GpuReader(5.0).read() is None


async def test_a_driver_that_hangs_holds_nobody_up_and_its_question_is_ended(
    driver, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    driver(f"echo $$ >> {asked}; exec sleep 60")
    reader = GpuReader(0.3)
    assert await reader.read() is None
    assert reader._asked is not None
    assert reader._asked.returncode == -signal.SIGKILL
    assert len(asked.read_text().split()) == 1  # the other name was not tried with a hung driver
    driver("echo '0, 1024, 2048, 50, 0x0'")
    assert await reader.read() is not None


async def test_a_question_that_is_given_up_leaves_no_process(driver) -> None:
    driver("exec sleep 60")
    reader = GpuReader(60.0)
    task = asyncio.ensure_future(reader.read())
    await asyncio.sleep(0)  # it asks at once
    assert reader._asked is not None
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert reader._asked.returncode == -signal.SIGKILL


async def test_while_a_question_hangs_no_other_is_asked(driver, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    driver(f"echo x >> {asked}; echo '0, 1024, 2048, 50, 0x0'")
    reader = GpuReader(5.0)

    class HangingProcess:
        returncode = None

        def poll(self):
            return self.returncode

    reader._asked = HangingProcess()
    assert await reader.read() is None
    assert not asked.exists()
    reader._asked.returncode = 0
    assert await reader.read() is not None
    assert asked.exists()


async def test_without_a_driver_there_is_no_answer(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await GpuReader(5.0).read() is None
