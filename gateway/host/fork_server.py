"""Fork server: a process without secrets or threads that imports once and forks children.

Importing all modules of a worker takes more than a second of CPU. Forking a process that has them
takes milliseconds and shares memory. `serve` sends an order (`ForkOrder`) as a file that only the
child reads, so that no secret is in the memory that the next child copies. The order includes the
child's descriptors; it has no others.
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
from typing import Any, NamedTuple, NoReturn

import msgspec
import setproctitle

from gateway.host.children import die_with_parent
from gateway.host.process_end import end_process
from gateway.host.run_module import run_module

MESSAGE_BYTES = 4096  # no message is longer
MOST_DESCRIPTORS = 64  # of one order
STANDARD = (0, 1, 2)
# A signal to a whole host (a process group, a control group) reaches parent and children,
# too. This process ends when its channel is closed.
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
            signal.SIGUSR2)  # fmt: skip


class ForkOrder(NamedTuple):
    """Order for a child: `python -m MODULE WORDS...` with exactly this environment.

    `descriptors` are the child's numbers for the descriptors that follow the order's own file.
    """

    module: str
    words: Sequence[str]
    environ: dict[str, str]
    descriptors: Sequence[int]

    def encode(self) -> bytes:
        """Return JSON, which keeps bytes that are not UTF-8 (lone surrogates in Python)."""
        return json.dumps(self).encode()


class ForkNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """Message about a child: started (with its pidfd), ended with `code`, or a `fault`.

    `ready` concerns no child: a replacement fork server now takes orders.
    """

    pid: int = 0
    code: int | None = None
    fault: str = ""
    ready: bool = False


def has_threads() -> bool:
    """Return whether this process has more than one thread; a fork has only one."""
    return len(os.listdir("/proc/self/task")) > 1  # noqa: PTH208  (names alone)


def run(channel: socket.socket, host: int) -> NoReturn:
    """Serve orders of the process `host`, and exit when the channel is closed.

    Each child exits, too, after the ordered module has run. Raises in a child what the module
    raises.
    """
    _belong_to(host, signal.SIGKILL)  # SIGKILL also ends a stopped process
    _close_all_but(channel.fileno())
    server = os.getpid()
    order = serve_forks(channel)
    if order is not None:
        _belong_to(server, signal.SIGTERM)  # not before: the server ignores that signal
        try:
            run_order(order)
        except SystemExit as end:
            end_process(end.code)
    end_process(None)


def serve_forks(channel: socket.socket) -> ForkOrder | None:
    """Fork for each order. Return the order in the child, `None` when the channel is closed."""
    gc.freeze()  # the collector of a child would copy each page that it looks at
    with _own_signals() as wake_pipe:
        ready = select.poll()
        for descriptor in (channel.fileno(), wake_pipe):
            ready.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in ready.poll():
                if descriptor == wake_pipe:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_pipe, MESSAGE_BYTES)
                    _send_exit_codes(channel)
                    continue
                message, given, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, MOST_DESCRIPTORS)
                if not message:
                    return None
                if _is_child(channel, given):
                    channel.close()
                    return _take_order(given)


@contextlib.contextmanager
def _own_signals() -> Iterator[int]:
    """Yield a pipe that is readable when a child has ended; restore signal handlers at exit.

    The handlers are restored in the child, too.
    """
    wake_pipe, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before: dict[int, Any] = {number: signal.signal(number, signal.SIG_IGN) for number in _IGNORED}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield wake_pipe
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        for descriptor in (wake_pipe, wake):
            os.close(descriptor)


def _is_child(channel: socket.socket, given: Sequence[int]) -> bool:
    """Fork and return whether this is the child; the parent reports and closes `given`."""
    try:
        pid = os.fork()
        if pid > 0:
            _send_start(channel, pid)
    except OSError as error:
        channel.send(msgspec.json.encode(ForkNews(fault=str(error))))
    else:
        if pid == 0:  # outside of the `try`: a child that cannot begin ends, and serves nobody
            return True
    for descriptor in given:
        os.close(descriptor)
    return False


def _send_start(channel: socket.socket, pid: int) -> None:
    """Send the child's pidfd. Raises `OSError` if that fails; the child is killed then."""
    pidfd = None
    try:
        pidfd = os.pidfd_open(pid)
        socket.send_fds(channel, [msgspec.json.encode(ForkNews(pid))], [pidfd])
    except OSError:  # the child could not be stopped, and would be started twice
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        if pidfd is not None:
            os.close(pidfd)


def _send_exit_codes(channel: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):  # there is none
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            news = ForkNews(pid, os.waitstatus_to_exitcode(status))
            channel.send(msgspec.json.encode(news))


def _belong_to(parent: int, end: int) -> None:
    """Begin a session, and have the kernel send `end` when the process `parent` dies."""
    os.setsid()
    die_with_parent(end)
    if os.getppid() != parent:  # it died before the request to the kernel
        os._exit(0)


def _close_all_but(kept: int) -> None:
    """Close inherited files of `serve` (locks, password pipes), so that no child has them."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  (names alone)
        if (number := int(name)) not in (*STANDARD, kept):
            with contextlib.suppress(OSError):  # of the list itself
                os.close(number)


def _take_order(given: Sequence[int]) -> ForkOrder:
    """Read the order from the first descriptor, and move the others to their numbers."""
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
    """Run the ordered module; return, or raise `SystemExit`, as its `main` does."""
    os.environ.clear()
    os.environ.update(order.environ)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # `None` where the command was given none
            stream.reconfigure(line_buffering=True)
    command = " ".join([sys.executable, "-m", order.module, *order.words])
    setproctitle.setproctitle(os.fsencode(command).decode("utf-8", "replace"))
    sys.argv = [order.module, *order.words]
    run_module(order.module)
