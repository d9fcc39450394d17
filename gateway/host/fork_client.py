"""Order children from the fork server and receive their exit codes, in `serve`."""

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
ANSWER_S = 10.0  # a fork server without an answer for so long is stopped, or the machine is
GONE = "the fork server is gone"

log = logging.getLogger("breakeven.children")


class ForkedProcess:
    """One child, as `asyncio.subprocess.Process` shows one. Signals go by its pidfd, not by id."""

    def __init__(
        self, pid: int, pidfd: int, on_unreported_end: Callable[["ForkedProcess"], None]
    ) -> None:
        """Take over `pidfd`. `on_unreported_end`: called if the child ends without an exit code."""
        self.pid = pid
        self._pidfd = pidfd
        self._on_unreported_end = on_unreported_end
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
                signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def end(self, code: int) -> None:
        """Set the exit code and close the pidfd."""
        if not self._ended.done():
            self._ended.set_result(code)
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)

    def await_code(self, patience_s: float) -> None:
        """Wait for the exit code for `patience_s` seconds after the child's end."""
        if not self._ended.done():
            self._patience_s = patience_s
            self._loop.add_reader(self._pidfd, self._see_end)

    def _see_end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self._loop.call_later(self._patience_s, self._give_up)

    def _give_up(self) -> None:
        if not self._ended.done():
            self._on_unreported_end(self)


class ForkClient:
    """Order children from a fork server. If that dies, children are started as programs."""

    def __init__(self, channel: socket.socket, server_pid: int) -> None:
        self._channel: socket.socket | None = channel
        self._server_pid = server_pid
        self._running: dict[int, ForkedProcess] = {}
        self._asked: deque[asyncio.Future[ForkedProcess]] = deque()
        self._reaping: asyncio.Future[None] | None = None

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> Self | None:
        """Return the client of this process's fork server, `None` if it was started without one."""
        given = environ.pop(CHANNEL, None)
        if given is None:
            return None
        descriptor, _, pid = given.partition(":")
        return cls(socket.socket(fileno=int(descriptor)), int(pid))

    def begin(self) -> None:
        """Receive messages in the running loop."""
        assert self._channel is not None, "begun once"
        self._channel.setblocking(False)
        asyncio.get_running_loop().add_reader(self._channel, self._receive)

    async def end(self) -> None:
        """Kill the fork server; the kernel ends its children then."""
        self._lose_server()
        if self._reaping is not None:
            await self._reaping

    @property
    def works(self) -> bool:
        return self._channel is not None

    async def start(self, command: ChildCommand, output: int) -> ForkedProcess:
        """Fork a child that runs the command's module. Raises `OSError` if no child is started."""
        if self._channel is None:
            raise OSError(GONE)
        if command.module is None:
            raise ValueError(f"{command.name} is no Python module")
        numbers = (*STREAMS, *command.descriptors)
        order = ForkOrder(command.module, command.words, dict(command.environ), numbers)
        with memory_file(order.encode()) as file:
            given = (file.fileno(), *(output for _ in STREAMS), *command.descriptors)
            socket.send_fds(self._channel, [b"fork"], given)
        started: asyncio.Future[ForkedProcess] = asyncio.get_running_loop().create_future()
        self._asked.append(started)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await asyncio.shield(started)
        except TimeoutError:
            log.warning("no answer within %g s: the fork server is killed", ANSWER_S)
            self._lose_server()
            raise OSError(GONE) from None
        except asyncio.CancelledError:
            started.add_done_callback(_end_unwanted)
            raise

    def _receive(self) -> None:
        assert self._channel is not None
        try:
            message, given, _, _ = socket.recv_fds(self._channel, MESSAGE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            log.warning("the channel is closed: children are started again as programs")
            self._lose_server()
            return
        news = msgspec.json.decode(message, type=ForkNews)
        if news.code is None:
            self._answer(news, given)
        elif (process := self._running.pop(news.pid, None)) is not None:
            process.end(news.code)

    def _answer(self, news: ForkNews, given: Sequence[int]) -> None:
        """Resolve the oldest order with its child, or with the reason why there is none."""
        asked = self._asked.popleft()
        if news.fault or not given:
            if news.pid:  # it runs, but this process may open no more files: nobody could end it
                with contextlib.suppress(ProcessLookupError):  # it has ended, and was reaped
                    os.kill(news.pid, signal.SIGKILL)
            _refuse(asked, news.fault or "Too many open files")
            return
        process = self._running[news.pid] = ForkedProcess(news.pid, given[0], self._miss_end)
        asked.set_result(process)

    def _miss_end(self, process: ForkedProcess) -> None:
        """Kill the fork server, which reported no exit code of a child that has ended."""
        if self._channel is not None:
            log.warning("no exit code within %g s: the fork server is killed", ANSWER_S)
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
    asked.exception()  # the order may have been cancelled


def _end_unwanted(started: "asyncio.Future[ForkedProcess]") -> None:
    """Kill the child of an order that was cancelled."""
    if not started.cancelled() and started.exception() is None:
        started.result().kill()


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


@contextlib.asynccontextmanager
async def listening(environ: MutableMapping[str, str]) -> AsyncIterator[ForkClient | None]:
    """Yield the client of this process's fork server; `None`: children are started as programs."""
    forks = ForkClient.take(environ)
    if forks is None:
        yield None
        return
    forks.begin()
    try:
        yield forks
    finally:
        await forks.end()
