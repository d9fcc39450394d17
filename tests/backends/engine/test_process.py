"""One life of an engine as a process: its ports and the cause found in its log."""

import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from backends.engine.environment import CpuOptions
from backends.engine.process import EngineProcess, free_port, log_tail

RANKS = (  # what vLLM 0.25.1 writes when a rank cannot import, shortened
    "(Worker_TP1 pid=7) ERROR 11-25 [executor.py:898] WorkerProc failed to start.\n"
    "(Worker_TP1 pid=7) ERROR 11-25 [executor.py:898]     from flashinfer import (\n"
    "(Worker_TP1 pid=7) ERROR 11-25 [executor.py:898] ModuleNotFoundError: No module\n"
    "(Worker_TP0 pid=6) ERROR 11-25 [executor.py:898] ModuleNotFoundError: No module\n"
    "(EngineCore pid=5) Exception: WorkerProc initialization failed due to an exception"
    " in a background process. See stack trace for root cause.\n"
    "(APIServer pid=4)     raise RuntimeError(\n"
    "(APIServer pid=4) RuntimeError: Engine core failed. See root cause above.\n"
)


def test_a_free_port_can_be_bound():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free_port()))


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("INFO start\nValueError: too long\nINFO stop\n", "ValueError: too long"),
        ("one\ntwo\nthree\nfour\n", "two | three | four"),
        ("", ""),
        (
            "pydantic.ValidationError: 1 validation error\n  Value error, too long\n    For more\n",
            "pydantic.ValidationError: 1 validation error | Value error, too long",
        ),
        (
            f"ValueError: begins {'x' * 900} ends\n",
            f"ValueError: begins {'x' * 181} ... {'x' * 195} ends",
        ),
        (
            "ValueError: early\nERROR: [Errno 98] in use\nFATAL no memory\n",
            "ValueError: early | [Errno 98] in use | FATAL no memory",
        ),
        (
            RANKS,
            "ModuleNotFoundError: No module",
        ),
        (
            "RuntimeError: failed. See root cause above.\n",
            "RuntimeError: failed. See root cause above.",
        ),
    ],
)
def test_the_tail_of_a_log_shows_the_cause(tmp_path, text, tail):
    (tmp_path / "log").write_text(text)
    assert log_tail(tmp_path / "log") == tail


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (3, "exited with 3: ValueError: of this life"),
        (128 + 9, "ended by signal 9 (Killed)"),
        (128 + 11, "ended by signal 11 (Segmentation fault): ValueError: of this life"),
        (-9, "its guard was ended by signal 9 (Killed)"),
    ],
)
def test_how_it_ended_is_told_without_what_is_unrelated(tmp_path, code, told):
    before = "RuntimeError: of the life before\n"
    log = tmp_path / "log"
    log.write_text(f"{before}WARNING an error that was none\nValueError: of this life\nINFO end\n")
    assert EngineProcess(None, log, len(before)).cause(code) == told
    log.write_text(f"{before}WARNING an error that was none\n")
    assert EngineProcess(None, log, len(before)).cause(128 + 6) == "ended by signal 6 (Aborted)"


def test_a_missing_log_is_said(tmp_path):
    assert log_tail(tmp_path / "nothing") == "no log"


def worker_lives(folder: Path) -> bool:
    pid = folder / "worker.pid"
    return pid.exists() and Path("/proc", pid.read_text()).exists()


async def test_hang_up_kills_at_once(fake_spec, tmp_path):
    launch = fake_spec().launch
    words = [str(launch.environment.python), "-m", "x", "serve", str(launch.model)]
    process = await EngineProcess.start(words, launch, log=tmp_path / "log", cpu=CpuOptions())
    process.send(signal.SIGHUP)
    # Either the guard was ready and killed the engine, or it died before it started anything.
    assert await process.wait() in (128 + signal.SIGKILL, -signal.SIGHUP)
    assert not worker_lives(launch.model.parent)
    process.send(signal.SIGTERM)  # gone already: nothing happens


@pytest.mark.parametrize(("gpus", "seen"), [((), "0,1,2,3"), (("2", "3"), "2,3")])
async def test_an_engine_sees_its_own_gpus(fake_spec, tmp_path, monkeypatch, gpus, seen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    launch = replace(fake_spec().launch, gpus=gpus)
    words = [sys.executable, "-c", "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"]
    log = tmp_path / "log"
    process = await EngineProcess.start(words, launch, log=log, cpu=CpuOptions())
    assert await process.wait() == 0
    assert log.read_text().strip() == seen


@pytest.mark.parametrize(
    ("traces", "seen"), [(None, ["", ""]), ("http://c/v1/traces", ["http/protobuf", "vllm/tiny"])]
)
async def test_an_engine_that_tells_its_spans_says_whose_they_are(
    fake_spec, tmp_path, traces, seen
):
    launch = replace(fake_spec().launch, traces=traces, served_name="tiny")
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_SERVICE_NAME")
    tells = f"import os; print(*(os.environ.get(name, '') for name in {names}), sep=',')"
    log = tmp_path / "log"
    words = [sys.executable, "-c", tells]
    process = await EngineProcess.start(words, launch, log=log, cpu=CpuOptions())
    assert await process.wait() == 0
    assert log.read_text().strip().split(",") == seen


async def test_hang_up_kills_a_guard_that_was_started_under_nohup(fake_spec, tmp_path):
    """Ignored signals are inherited: one sent before the guard listens must not be lost."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        launch = fake_spec().launch
        words = [str(launch.environment.python), "-m", "x", "serve", str(launch.model)]
        process = await EngineProcess.start(words, launch, log=tmp_path / "log", cpu=CpuOptions())
        process.send(signal.SIGHUP)
        assert await process.wait() in (128 + signal.SIGKILL, -signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not worker_lives(launch.model.parent)
