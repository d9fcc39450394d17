"""The end of the fork server's channel that `serve` holds: it orders children and hears of ends."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import AsyncIterator, MutableMapping
from typing import Self

import msgspec

from gateway.host.children import ChildCommand
from gateway.host.fork_server import MESSAGE_BYTES, ForkNews, ForkOrder
from gateway.host.memory_file import memory_file
from gateway.host.preload import CHANNEL

STREAMS = (1, 2)  # output and errors; the fork server itself reads nothing

log = logging.getLogger("breakeven.children")


class ForkedProcess:
    """One child, as `asyncio.subprocess.Process` shows one. Signals go by its pidfd, not by id."""

    def __init__(self, pid: int, life: int) -> None:
        self.pid = pid
        self._life = life
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def returncode(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def send_signal(self, number: int) -> None:
        if not self._ended.done():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._life, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def end(self, code: int) -> None:
        """It is over: said by the fork server, or by the kernel where that is gone."""
        if not self._ended.done():
            self._ended.set_result(code)
            os.close(self._life)

    def watch(self) -> None:
        """Nobody reaps it for this process any more: its pidfd tells when it is over."""
        loop = asyncio.get_running_loop()

        def look() -> None:
            loop.remove_reader(self._life)
            self.end(-signal.SIGTERM)  # which the kernel sends it when the fork server dies

        loop.add_reader(self._life, look)


class ForkClient:
    """Orders children. A fork server that died is not started again: programs are executed then."""

    def __init__(self, channel: socket.socket, server_pid: int) -> None:
        self._channel: socket.socket | None = channel
        self._server_pid = server_pid
        self._running: dict[int, ForkedProcess] = {}
        self._asked: deque[asyncio.Future[ForkedProcess]] = deque()

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> Self | None:
        """Take what this process was given, if it was started with a fork server."""
        given = environ.pop(CHANNEL, None)
        if given is None:
            return None
        descriptor, _, pid = given.partition(":")
        return cls(socket.socket(fileno=int(descriptor)), int(pid))

    def begin(self) -> None:
        """Listen in the running loop."""
        assert self._channel is not None, "begun once"
        self._channel.setblocking(False)
        asyncio.get_running_loop().add_reader(self._channel, self._hear)

    async def end(self) -> None:
        """End the fork server, and with it what still runs of its children."""
        self._lose_server()
        await asyncio.to_thread(self._reap)

    @property
    def works(self) -> bool:
        return self._channel is not None

    def _lose_server(self) -> None:
        channel, self._channel = self._channel, None
        if channel is None:
            return
        asyncio.get_running_loop().remove_reader(channel)
        channel.close()
        for process in self._running.values():
            process.watch()
        while self._asked:
            self._asked.popleft().set_exception(OSError("the fork server is gone"))

    def _reap(self) -> None:
        """It ends by itself when its channel is closed."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._server_pid, 0)

    async def start(self, command: ChildCommand, output: int) -> ForkedProcess:
        """`command` is a module of ours. Raises `OSError` where it could not be forked."""
        assert self._channel is not None
        _, _, module, *words = command.argv
        order = ForkOrder(module, words, dict(command.environ), (*STREAMS, *command.descriptors))
        with memory_file(msgspec.json.encode(order)) as file:
            given = (file.fileno(), *(output for _ in STREAMS), *command.descriptors)
            socket.send_fds(self._channel, [b"fork"], given)
        started: asyncio.Future[ForkedProcess] = asyncio.get_running_loop().create_future()
        self._asked.append(started)
        return await asyncio.shield(started)

    def _hear(self) -> None:
        assert self._channel is not None
        try:
            message, given, _, _ = socket.recv_fds(self._channel, MESSAGE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            log.warning("the fork server is gone: what it started is started again without it")
            self._lose_server()
            return
        news = msgspec.json.decode(message, type=ForkNews)
        if news.code is not None:
            self._running.pop(news.pid).end(news.code)
            return
        asked = self._asked.popleft()
        if news.fault:
            asked.set_exception(OSError(news.fault))
            return
        process = self._running[news.pid] = ForkedProcess(news.pid, given[0])
        asked.set_result(process)


@contextlib.asynccontextmanager
async def listening(environ: MutableMapping[str, str]) -> AsyncIterator[ForkClient | None]:
    """Yield what forks the children of a command; `None`: each is a program of its own."""
    forks = ForkClient.take(environ)
    if forks is None:
        yield None
        return
    forks.begin()
    try:
        yield forks
    finally:
        await forks.end()
