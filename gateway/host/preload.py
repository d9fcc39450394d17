"""Start of a command that runs a host: shared modules are imported once.

The command executes itself again without the secrets of its environment, imports, forks the fork
server (`fork_server`), and then restores its environment. So a process forked later has no secret
in its memory except those that it is given.
"""

import importlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

from gateway.host.memory_file import memory_file

COMMANDS = frozenset({"serve", "up", "demo"})
PRIVATE = 0o077  # umask for files of a host
CHANNEL = "BREAKEVEN_FORK_SERVER"  # the command's end of the channel, and the fork server's pid
GIVEN = "BREAKEVEN_GIVEN_ENVIRON"  # the descriptor of a file with what the command was given
_SWITCH = "BREAKEVEN_PRELOAD"  # "0": each process is a separate program, for debugging


def preload() -> None:
    """Prepare the fork server, and return only in the process that runs the command."""
    given = os.environ.pop(GIVEN, None)
    if given is not None:
        _start_fork_server(int(given))
    elif _runs_host(sys.argv) and os.environ.get(_SWITCH) != "0" and _can_fork():
        _execute_anew()


def _runs_host(words: Sequence[str]) -> bool:
    return len(words) > 1 and words[1] in COMMANDS and "--help" not in words


def _can_fork() -> bool:
    """Return whether the system supports the forks; some sandboxes and Python builds do not."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return hasattr(os, "memfd_create")


def _execute_anew() -> None:
    """Execute the command again; return if the system refuses, and it starts as it is."""
    _open_standard_streams()
    plain_environ = importlib.import_module("backends.environ").plain_environ
    with suppress(OSError):
        file = memory_file(json.dumps(dict(os.environ)).encode())
        os.set_inheritable(file.fileno(), True)
        environ = plain_environ(os.environ) | {GIVEN: str(file.fileno())}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)  # noqa: S606  (no shell)


def _open_standard_streams() -> None:
    """Open missing standard streams; otherwise the next opened file would become one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _start_fork_server(given: int) -> None:
    # Before the environment changes: process titles are stored next to it.
    set_title = importlib.import_module("setproctitle").setproctitle
    importlib.import_module("gateway.host.shared_work").do_shared_work()
    fork_server = importlib.import_module("gateway.host.fork_server")
    if fork_server.has_threads():  # started by a `sitecustomize`: forks would lose them
        _take_environ(given)
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    host = os.getpid()
    pid = os.fork()
    if pid == 0:
        ours.close()
        os.umask(PRIVATE)  # as the command's own is once it holds the state directory
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123  (no path of an own)
            os.dup2(nothing.fileno(), 0)
        title = " ".join(["breakeven fork server", *sys.argv[2:]])  # without the command's name
        set_title(os.fsencode(title).decode("utf-8", "replace"))
        fork_server.run(theirs, host)  # to the end of the process
    theirs.close()
    _take_environ(given)
    os.environ[CHANNEL] = f"{ours.detach()}:{pid}"


def _take_environ(given: int) -> None:
    with os.fdopen(given, "rb") as file:
        os.environ.update(json.loads(file.read()))
