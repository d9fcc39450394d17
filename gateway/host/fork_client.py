"""The end of the fork server's channel that `serve` holds: it orders children and hears of ends."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, MutableMapping, Sequence
from typing import Self

import msgspec

from gateway.host.children import ChildCommand
from gateway.host.fork_server import MESSAGE_BYTES, ForkNews, ForkOrder
from gateway.host.memory_file import memory_file
from gateway.host.preload import CHANNEL

STREAMS = (1, 2)  # a child's output and errors; its input is the fork server's, which has none
ANSWER_S = 10.0  # a fork server that says nothing for so long is stopped, or the machine stands
GONE = "the fork server is gone"

log = logging.getLogger("breakeven.children")


class ForkedProcess:
    """One child, as `asyncio.subprocess.Process` shows one. Signals go by its pidfd, not by id."""

    def __init__(self, pid: int, life: int, late: Callable[["ForkedProcess"], None]) -> None:
        """`life` is its pidfd; `late` is called where it has ended and nobody says how."""
        self.pid = pid
        self._life = life
        self._late = late
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self.await_code(ANSWER_S)

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
        """Take note of how it ended."""
        if not self._ended.done():
            self._ended.set_result(code)
            self._loop.remove_reader(self._life)
            os.close(self._life)

    def await_code(self, patience_s: float) -> None:
        """Once it has ended the fork server says how, within so many seconds or never."""
        if not self._ended.done():
            self._patience_s = patience_s
            self._loop.add_reader(self._life, self._see_end)

    def _see_end(self) -> None:
        self._loop.remove_reader(self._life)
        self._loop.call_later(self._patience_s, self._give_up)

    def _give_up(self) -> None:
        if not self._ended.done():
            self._late(self)


class ForkClient:
    """Orders children. A fork server that died is not started again: programs are executed then."""

    def __init__(self, channel: socket.socket, server_pid: int) -> None:
        self._channel: socket.socket | None = channel
        self._server_pid = server_pid
        self._running: dict[int, ForkedProcess] = {}
        self._asked: deque[asyncio.Future[ForkedProcess]] = deque()
        self._reaping: asyncio.Future[None] | None = None

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
        if self._reaping is not None:
            await self._reaping

    @property
    def works(self) -> bool:
        return self._channel is not None

    async def start(self, command: ChildCommand, output: int) -> ForkedProcess:
        """Fork a child that is this command. Raises `OSError` where that is not possible."""
        if self._channel is None:
            raise OSError(GONE)
        _, _, module, *words = command.argv
        numbers = (*STREAMS, *command.descriptors)
        order = ForkOrder(module, words, dict(command.environ), numbers)
        with memory_file(order.encode()) as file:
            given = (file.fileno(), *(output for _ in STREAMS), *command.descriptors)
            socket.send_fds(self._channel, [b"fork"], given)
        started: asyncio.Future[ForkedProcess] = asyncio.get_running_loop().create_future()
        self._asked.append(started)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await asyncio.shield(started)
        except TimeoutError:
            log.warning("the fork server does not answer: it is ended, with what it started")
            self._lose_server()
            raise OSError(GONE) from None
        except asyncio.CancelledError:
            started.add_done_callback(_end_unwanted)
            raise

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
        if news.code is None:
            self._answer(news, given)
        elif (process := self._running.pop(news.pid, None)) is not None:
            process.end(news.code)

    def _answer(self, news: ForkNews, given: Sequence[int]) -> None:
        """Tell who asked first of their child, or why there is none."""
        asked = self._asked.popleft()
        if news.fault or not given:
            if news.pid:  # it runs, but this process may open no more files: nobody could end it
                os.kill(news.pid, signal.SIGKILL)
            _refuse(asked, news.fault or "Too many open files")
            return
        process = self._running[news.pid] = ForkedProcess(news.pid, given[0], self._miss_end)
        asked.set_result(process)

    def _miss_end(self, process: ForkedProcess) -> None:
        """A child has ended, which the fork server does not say: it is stopped, or worse."""
        if self._channel is not None:
            log.warning("the fork server tells of no end: it is ended, with what it started")
            self._lose_server()
        self._running.pop(process.pid, None)
        process.end(-signal.SIGTERM)  # sent by the kernel to what a fork server leaves

    def _lose_server(self) -> None:
        channel, self._channel = self._channel, None
        if channel is None:
            return
        asyncio.get_running_loop().remove_reader(channel)
        channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._server_pid, signal.SIGKILL)
        while self._asked:
            _refuse(self._asked.popleft(), GONE)
        for process in self._running.values():
            process.await_code(0)
        self._reaping = asyncio.ensure_future(asyncio.to_thread(_reap, self._server_pid))


def _refuse(asked: "asyncio.Future[ForkedProcess]", why: str) -> None:
    asked.set_exception(OSError(why))
    asked.exception()  # whoever asked may be gone


def _end_unwanted(started: "asyncio.Future[ForkedProcess]") -> None:
    """Nobody waits for it any more."""
    if not started.cancelled() and started.exception() is None:
        started.result().kill()


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


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
