"""The engine's installation as a process: its news, its three ends, and that it can be ended."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.engine.install import InstallProgress
from gateway.errors import ConfigError
from gateway.host.installing import InstallProcess


@pytest.mark.usefixtures("no_index")
async def test_an_engine_that_nobody_has_is_a_result(tmp_path):
    news: list[InstallProgress] = []
    installing = InstallProcess(tmp_path / "engine", news.append)
    await installing.run()
    assert installing.unavailable is not None
    assert "torch" in installing.unavailable.reason
    assert installing.unavailable.command.startswith("breakeven engine install ")
    assert not installing.fresh
    assert [item.stage for item in news][:2] == ["environment", "torch"]
    assert list(tmp_path.glob("engine*")) == []


@pytest.mark.usefixtures("no_index")
async def test_a_fault_is_an_error_with_its_cause(tmp_path):
    """No index, and no place for the environment either."""
    (tmp_path / "file").write_text("in the way")
    installing = InstallProcess(tmp_path / "file" / "engine", lambda _: None)
    with pytest.raises(ConfigError, match="the engine cannot be installed"):
        await installing.run()


async def test_it_ends_with_all_its_processes_and_none_had_a_key(tmp_path, monkeypatch):
    """pip waits for an index that takes connections and never answers."""
    asked = asyncio.Event()
    visits: list[asyncio.Task] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append(asyncio.current_task())
        asked.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("OPENAI_API_KEY", "s-3cr3t")
    installing = InstallProcess(tmp_path / "engine", lambda _: None)
    work = asyncio.create_task(installing.run())
    async with asyncio.timeout(60):
        await asked.wait()
        seen = running_in(tmp_path)
        assert seen
        assert not any(b"s-3cr3t" in environ for environ in seen)
        assert all(b"PIP_INDEX_URL=" in environ for environ in seen)
        await installing.stop()
        with pytest.raises(ConfigError, match=r"ended with -9 at: torch"):
            await work
    server.close()
    await asyncio.gather(*visits)
    assert running_in(tmp_path) == []


async def test_stopping_what_never_ran_is_nothing(tmp_path):
    await InstallProcess(tmp_path, lambda _: None).stop()


@pytest.mark.usefixtures("no_index")
def test_the_process_speaks_json_lines(tmp_path):
    command = [sys.executable, "-m", "gateway.host.installing", str(tmp_path / "engine")]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    assert lines[0]["stage"] == "environment"
    assert lines[-1].keys() == {"reason", "command"}


def running_in(folder: Path) -> list[bytes]:
    """The environments of live processes whose command lines name the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words, environ = ((entry / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if os.fsencode(folder) in words:
            found.append(environ)
    return found
