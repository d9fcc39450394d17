"""Client of the fork server in `serve`: orders children and receives their exit codes."""

import asyncio
import contextlib
import functools
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, MutableMapping, Sequence
from typing import Self

import msgspec

from gateway.host.children import ChildCommand
from gateway.host.fork_program import start_fork_server
from gateway.host.fork_server import MESSAGE_BYTES, ForkNews, ForkOrder
from gateway.host.memory_file import memory_file
from gateway.host.preload import CHANNEL

STREAMS = (1, 2)  # a child's output and errors; its input is the fork server's, which has none
ANSWER_S = 10.0  # timeout after which the fork server is killed
RENEW_S = 1.0  # until the next one is started, twice as long after each that forked no child
RENEW_LIMIT_S = 60.0
GONE = "the fork server is gone"

log = logging.getLogger("breakeven.children")


class ForkedProcess:
    """One child, like `asyncio.subprocess.Process`. Signals use its pidfd, not its id."""

    def __init__(
        self, pid: int, pidfd: int, on_unreported_end: Callable[["ForkedProcess"], None]
    ) -> None:
        """Take over `pidfd`. `on_unreported_end` is called if the child's exit code is missing."""
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
    """Client that orders children from a fork server.

    If the server dies, children are started as programs until the next one is ready. `renew` starts
    it and returns its channel and process id; with `None` there is no next one.
    """

    def __init__(
        self,
        channel: socket.socket,
        server_pid: int,
        renew: Callable[[], tuple[socket.socket, int]] | None = None,
    ) -> None:
        self._channel: socket.socket | None = channel
        self._server_pid = server_pid
        self._renew = renew
        self._renewals = 0  # in a row that forked no child
        self._timer: asyncio.TimerHandle | None = None
        self._ready = True
        self._running: dict[int, ForkedProcess] = {}
        self._asked: deque[asyncio.Future[ForkedProcess]] = deque()
        self._reaping: set[asyncio.Future[None]] = set()

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> Self | None:
        """Return the client of this process's fork server, or `None` if it has none."""
        given = environ.pop(CHANNEL, None)
        if given is None:
            return None
        descriptor, _, pid = given.partition(":")
        renew = functools.partial(start_fork_server, environ)
        return cls(socket.socket(fileno=int(descriptor)), int(pid), renew)

    def begin(self) -> None:
        """Receive messages in the running loop."""
        assert self._channel is not None, "begun once"
        self._channel.setblocking(False)
        asyncio.get_running_loop().add_reader(self._channel, self._receive)

    async def end(self) -> None:
        """Kill the fork server; the kernel ends its children then."""
        self._renew = None
        if self._timer is not None:
            self._timer.cancel()
        self._lose_server()
        await asyncio.gather(*self._reaping)

    @property
    def works(self) -> bool:
        return self._channel is not None and self._ready

    async def start(self, command: ChildCommand, output: int) -> ForkedProcess:
        """Fork a child that runs the command's module. Raises `OSError` if no child is started."""
        if self._channel is None or not self._ready:
            raise OSError(GONE)
        if command.module is None:
            raise ValueError(f"{command.name} is not a Python module")
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
            log.warning("killing the fork server: no answer timeout_s=%g", ANSWER_S)
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
            log.warning("the fork server closed its channel: children start as programs")
            self._lose_server()
            return
        news = msgspec.json.decode(message, type=ForkNews)
        if news.ready:
            self._ready = True
            log.info("the fork server runs again")
        elif news.code is None:
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
        self._renewals = 0
        asked.set_result(process)

    def _miss_end(self, process: ForkedProcess) -> None:
        """Kill the fork server that did not report the exit code of an ended child."""
        if self._running.get(process.pid) is process:  # otherwise a child of an earlier server
            log.warning("killing the fork server: no exit code of a child timeout_s=%g", ANSWER_S)
            self._lose_server()
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
        left, self._running = self._running, {}
        for process in left.values():
            process.await_code(0)
        reaping = asyncio.ensure_future(asyncio.to_thread(_reap, self._server_pid))
        self._reaping.add(reaping)
        reaping.add_done_callback(self._reaping.discard)
        self._plan_next()

    def _plan_next(self) -> None:
        if self._renew is None:
            return
        pause_s = min(RENEW_S * 2**self._renewals, RENEW_LIMIT_S)
        self._renewals += 1
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._start_next)

    def _start_next(self) -> None:
        assert self._renew is not None
        try:
            self._channel, self._server_pid = self._renew()
        except OSError as error:  # out of resources, possibly temporary
            log.warning("the fork server was not restarted error=%s", error)
            self._plan_next()
            return
        self._ready = False
        self.begin()


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
    """Yield the client of the fork server; `None` if children are started as programs."""
    forks = ForkClient.take(environ)
    if forks is None:
        yield None
        return
    forks.begin()
    try:
        yield forks
    finally:
        await forks.end()
