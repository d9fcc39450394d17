"""A process without secrets or threads that has imported what a host's processes share, and forks.

To import all that a worker needs takes more than a second of CPU; to fork a process that has done
it takes milliseconds, and what was imported is in memory once. `serve` sends an order (`ForkOrder`)
as a file that the child alone reads: no secret is ever in the memory that the next child is a copy
of. With the order come the descriptors that the child is to have; it has no others.
"""

import contextlib
import fcntl
import gc
import io
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import setproctitle

from gateway.host.children import die_with_parent
from gateway.host.run_module import run_module

MESSAGE_BYTES = 4096  # no message is longer
MOST_DESCRIPTORS = 64  # of one order
STANDARD = (0, 1, 2)
# Signals for the whole of a host (a group's, a control group's) are its parent's and its children's
# to obey. This process ends when its channel is closed.
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
            signal.SIGUSR2)  # fmt: skip


class ForkOrder(NamedTuple):
    """What a child is to be: `python -m MODULE WORDS...`, with this environment and nothing else.

    `descriptors` are the numbers that those behind the order's own file have in the child.
    """

    module: str
    words: Sequence[str]
    environ: dict[str, str]
    descriptors: Sequence[int]

    def encode(self) -> bytes:
        """As JSON, in which bytes that are no UTF-8 (half a pair in Python) stay what they are."""
        return json.dumps(self).encode()


class ForkNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """A child runs (its pidfd comes along), or has ended with `code`, or could not be forked."""

    pid: int = 0
    code: int | None = None
    fault: str = ""


def has_threads() -> bool:
    """Return whether a fork of this process would lose some of it."""
    return len(os.listdir("/proc/self/task")) > 1  # noqa: PTH208  (names alone)


def run(channel: socket.socket, host: int) -> None:
    """Serve forks in a process that `host` forked for this; return when it is over.

    It returns in each child, too, when that has done what was ordered.
    """
    _belong_to(host, signal.SIGKILL)  # which also ends a process that is stopped
    _close_all_but(channel.fileno())
    order = serve_forks(channel)
    if order is not None:
        run_order(order)


def serve_forks(channel: socket.socket) -> ForkOrder | None:
    """Fork for each order. Return the order in the child; `None` where nobody orders any more."""
    gc.freeze()  # the collector of a child would copy each page that it looks at
    with _own_signals() as woken:
        ready = select.poll()
        for descriptor in (channel.fileno(), woken):
            ready.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in ready.poll():
                if descriptor == woken:
                    with contextlib.suppress(BlockingIOError):
                        os.read(woken, MESSAGE_BYTES)
                    _tell_ends(channel)
                    continue
                message, given, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, MOST_DESCRIPTORS)
                if not message:
                    return None
                if _is_child(channel, given):
                    channel.close()
                    return _take_order(given)


@contextlib.contextmanager
def _own_signals() -> Iterator[int]:
    """Yield what can be read when a child has ended; afterwards, in a child, all is as it was."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before: dict[int, Any] = {number: signal.signal(number, signal.SIG_IGN) for number in _IGNORED}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield woken
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        for descriptor in (woken, wake):
            os.close(descriptor)


def _is_child(channel: socket.socket, given: Sequence[int]) -> bool:
    """Fork; return whether this is the child. Its parent tells of it and keeps nothing of it."""
    server = os.getpid()
    try:
        pid = os.fork()
        if pid == 0:
            _belong_to(server, signal.SIGTERM)
            return True
        _tell_start(channel, pid)
    except OSError as error:
        channel.send(msgspec.json.encode(ForkNews(fault=str(error))))
    for descriptor in given:
        os.close(descriptor)
    return False


def _tell_start(channel: socket.socket, pid: int) -> None:
    """Raises `OSError` where nobody could end the child; it has ended then."""
    try:
        life = os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    socket.send_fds(channel, [msgspec.json.encode(ForkNews(pid))], [life])
    os.close(life)


def _tell_ends(channel: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):  # there is none
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            news = ForkNews(pid, os.waitstatus_to_exitcode(status))
            channel.send(msgspec.json.encode(news))


def _belong_to(parent: int, end: int) -> None:
    """Begin a session, and end by this signal when the process that forked this one does."""
    os.setsid()
    die_with_parent(end)
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(0)


def _close_all_but(kept: int) -> None:
    """What `serve` was started with (locks, pipes of passwords) is no child's to have."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  (names alone)
        if (number := int(name)) not in (*STANDARD, kept):
            with contextlib.suppress(OSError):  # of the list itself
                os.close(number)


def _take_order(given: Sequence[int]) -> ForkOrder:
    """Read the order from the first, and give the others their numbers."""
    with open(given[0], "rb") as file:  # noqa: PTH123  (a descriptor)
        order = ForkOrder(*json.loads(file.read()))
    beyond = max((*STANDARD, *order.descriptors)) + 1  # where none of the numbers is
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, beyond) for descriptor in given[1:]]
    for descriptor in given[1:]:
        os.close(descriptor)
    for descriptor, number in zip(aside, order.descriptors, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return order


def run_order(order: ForkOrder) -> None:
    """Be what was ordered; returns, or raises `SystemExit`, as the module's `main` does."""
    os.environ.clear()
    os.environ.update(order.environ)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # `None` where the command was given none
            stream.reconfigure(line_buffering=True)
    command = " ".join([sys.executable, "-m", order.module, *order.words])
    setproctitle.setproctitle(os.fsencode(command).decode("utf-8", "replace"))
    sys.argv = [order.module, *order.words]
    run_module(order.module)
