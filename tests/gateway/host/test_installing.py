"""The engine's installation as a process: its news, its three ends, and that it can be ended."""

import asyncio
import contextlib
import json
import os
from pathlib import Path

import pytest

from backends.engine.install import InstallError, InstallProgress, InstallResult, NotAvailable
from gateway.errors import ConfigError
from gateway.host import installing
from gateway.host.installing import InstallProcess


@pytest.mark.long  # an environment with pip is made for it, as `test_start` does
@pytest.mark.usefixtures("no_index")
async def test_an_engine_that_nobody_has_is_a_result(tmp_path):
    news: list[InstallProgress] = []
    process = InstallProcess(tmp_path / "engine", news.append)
    await process.run()
    assert process.unavailable is not None
    assert "torch" in process.unavailable.reason
    assert process.unavailable.command.startswith("breakeven engine install ")
    assert not process.fresh
    assert [item.stage for item in news][:2] == ["environment", "torch"]
    assert list(tmp_path.glob("engine*")) == []


@pytest.mark.usefixtures("no_index")
async def test_a_fault_is_an_error_with_its_cause(tmp_path):
    """No index, and no place for the environment either."""
    (tmp_path / "file").write_text("in the way")
    process = InstallProcess(tmp_path / "file" / "engine", lambda _: None)
    with pytest.raises(ConfigError, match="the engine cannot be installed"):
        await process.run()


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
    process = InstallProcess(tmp_path / "engine", lambda _: None)
    work = asyncio.create_task(process.run())
    async with asyncio.timeout(60):
        await asked.wait()
        seen = running_in(tmp_path)
        assert seen
        assert not any(b"s-3cr3t" in environ for environ in seen)
        assert all(b"PIP_INDEX_URL=" in environ for environ in seen)
        await process.stop()
        with pytest.raises(ConfigError, match=r"ended with -9 at: torch"):
            await work
    server.close()
    await asyncio.gather(*visits)
    assert running_in(tmp_path) == []


async def test_stopping_what_never_ran_is_nothing(tmp_path):
    await InstallProcess(tmp_path, lambda _: None).stop()


@pytest.mark.parametrize(
    ("result", "last"),
    [
        (NotAvailable("no torch", "do"), {"reason": "no torch", "command": "do"}),
        (InstallResult(Path("/e"), "cpu", "1", fresh=True), {"installed": "/e", "fresh": True}),
        (InstallResult(Path("/e"), "cpu", "1", fresh=False), {"installed": "/e"}),
        (InstallError("no room"), {"fault": "no room"}),
    ],
)
def test_the_process_speaks_json_lines(monkeypatch, capsys, result, last):
    def install(request, report):
        assert request.directory == Path("/e")
        report(InstallProgress("environment", "Python"))
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(installing.installation, "install", install)
    monkeypatch.setattr("sys.argv", ["installing", "/e"])
    installing.main()
    first, *rest = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert first == {"stage": "environment", "message": "Python"}
    assert rest == [last]


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
