"""The fork server of later: the same modules, no secrets, ready when it says so."""

import asyncio
import os
import select
import signal
import socket
import sys
from pathlib import Path

import msgspec
import pytest

from gateway.host import fork_client
from gateway.host.children import ChildCommand
from gateway.host.fork_client import ForkClient
from gateway.host.fork_program import start_fork_server
from gateway.host.fork_server import ForkNews

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys

def main():
    print("gateway.worker.__main__" in sys.modules, "SOME_API_KEY" in __import__("os").environ)

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "ordered_program.py").write_text(PROGRAM)
    return {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "SOME_API_KEY": "s"}


def ready(channel: socket.socket) -> ForkNews:
    assert select.select([channel], [], [], 120)[0]
    return msgspec.json.decode(channel.recv(4096), type=ForkNews)


def test_it_says_when_it_is_ready_and_has_seen_no_secret(environ) -> None:
    channel, pid = start_fork_server(environ)
    assert ready(channel) == ForkNews(ready=True)
    assert b"SOME_API_KEY" not in Path(f"/proc/{pid}/environ").read_bytes()
    channel.close()
    assert os.waitpid(pid, 0)[1] == 0


def test_one_that_has_threads_is_none(environ, tmp_path) -> None:
    text = (
        "import threading as t, time; t.Thread(target=time.sleep, args=(99,), daemon=True).start()"
    )
    (tmp_path / "sitecustomize.py").write_text(text)
    channel, pid = start_fork_server(environ)
    assert select.select([channel], [], [], 120)[0]
    assert channel.recv(4096) == b""
    channel.close()
    assert os.waitpid(pid, 0)[1] == 0


async def test_a_dead_fork_server_is_started_again(environ, tmp_path, monkeypatch) -> None:
    """Red before: children were programs of their own from then on."""
    monkeypatch.setattr(fork_client, "RENEW_S", 0.01)
    channel, pid = await asyncio.to_thread(started_and_ready, environ)
    client = ForkClient(channel, pid, lambda: start_fork_server(environ))
    client.begin()
    log = tmp_path / "child.log"
    words = [sys.executable, "-m", "ordered_program"]
    command = ChildCommand("child", words, log, {"PYTHONPATH": environ["PYTHONPATH"]})
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(120):
        while client._server_pid == pid or not client.works:  # noqa: ASYNC110  (another process)
            await asyncio.sleep(0.02)
    with log.open("wb") as output:
        child = await client.start(command, output.fileno())
    assert await child.wait() == 0
    assert log.read_text() == "True False\n"
    await client.end()
    assert not client.works


async def test_where_it_cannot_be_started_it_is_tried_again(monkeypatch) -> None:
    monkeypatch.setattr(fork_client, "RENEW_S", 0.001)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    tries, there = [], asyncio.Event()

    def renew() -> tuple[socket.socket, int]:
        tries.append(1)
        if len(tries) == 4:
            there.set()
        raise BlockingIOError(11, "Resource temporarily unavailable")

    ended = await asyncio.create_subprocess_exec("true")
    client = ForkClient(ours, ended.pid, renew)
    client.begin()
    theirs.close()
    async with asyncio.timeout(30):
        await there.wait()
    assert not client.works
    await client.end()
    await ended.wait()


def started_and_ready(environ) -> tuple[socket.socket, int]:
    channel, pid = start_fork_server(environ)
    ready(channel)
    return channel, pid
