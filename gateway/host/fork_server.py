"""A process without secrets or threads that has imported what a host's processes share, and forks.

To import all that a worker needs takes more than a second of CPU; to fork a process that has done
it takes milliseconds, and what was imported is in memory once. `serve` sends an order (`ForkOrder`)
as a file that the child alone reads: no secret is ever in the memory that the next child is a copy
of. With the order come the descriptors that the child is to have.
"""

import contextlib
import fcntl
import gc
import importlib
import io
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import msgspec
import setproctitle

from gateway.host.children import die_with_parent

MESSAGE_BYTES = 4096  # no message is longer
MOST_DESCRIPTORS = 64  # of one order
_ASIDE = 1024  # descriptors stand here until each has its number


class ForkOrder(msgspec.Struct, frozen=True):
    """What a child is to be: `python -m MODULE WORDS...`, with this environment and nothing else.

    `descriptors` are the numbers that those behind the order's own file have in the child.
    """

    module: str
    words: Sequence[str]
    environ: dict[str, str]
    descriptors: Sequence[int]


class ForkNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """A child runs (its pidfd comes along), or has ended with `code`, or could not be forked."""

    pid: int = 0
    code: int | None = None
    fault: str = ""


def has_threads() -> bool:
    """Return whether a fork of this process would lose some of it."""
    return len(os.listdir("/proc/self/task")) > 1  # noqa: PTH208  (names alone)


def run(channel: socket.socket, host: int) -> None:
    """Of a process that `host` forked for this. Returns in it and, later, in each of its children.

    A child is then what was ordered, and has done it.
    """
    _belong_to(host)
    order = serve_forks(channel)
    if order is not None:
        run_order(order)


def _belong_to(parent: int) -> None:
    """In a session of its own, and no longer than the process that forked this one."""
    os.setsid()
    die_with_parent()
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(0)


def serve_forks(channel: socket.socket) -> ForkOrder | None:
    """Fork for each order. Returns the order in the child; `None` where nobody orders any more."""
    gc.freeze()  # the collector of a child would copy each page that it looks at
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([channel.fileno(), woken], [], [])
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, MESSAGE_BYTES)
            _tell_ends(channel)
        if channel.fileno() in ready:
            message, given, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, MOST_DESCRIPTORS)
            if not message:
                return None
            if _is_child(channel, given):
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for descriptor in (woken, wake):
                    os.close(descriptor)
                channel.close()
                return _take_order(given)


def _is_child(channel: socket.socket, given: Sequence[int]) -> bool:
    server = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        channel.send(msgspec.json.encode(ForkNews(fault=str(error))))
    else:
        if pid == 0:
            _belong_to(server)
            return True
        life = os.pidfd_open(pid)
        socket.send_fds(channel, [msgspec.json.encode(ForkNews(pid))], [life])
        os.close(life)
    for descriptor in given:
        os.close(descriptor)
    return False


def _tell_ends(channel: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):  # there is none
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            news = ForkNews(pid, os.waitstatus_to_exitcode(status))
            channel.send(msgspec.json.encode(news))


def _take_order(given: Sequence[int]) -> ForkOrder:
    """Read the order from the first, and give the others their numbers."""
    with open(given[0], "rb") as file:  # noqa: PTH123  (a descriptor)
        order = msgspec.json.decode(file.read(), type=ForkOrder)
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ASIDE) for descriptor in given[1:]]
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
    command = [sys.executable, "-m", order.module, *order.words]
    setproctitle.setproctitle(" ".join(command))
    sys.argv = [order.module, *order.words]
    run_module(order.module)


def run_module(name: str) -> None:
    """Run a module or a package of ours as `python -m` does, in this process, by its `main`."""
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
    importlib.import_module(name).main()
