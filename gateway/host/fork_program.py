"""Replacement fork server, started while `serve` runs after the first one died.

The first one is forked from the command before it has its secrets (`gateway.host.preload`). Later
`serve` has secrets and threads, so the next one is a program with an environment without secrets
that imports the same modules. That takes about a second; until it reports that it is ready,
children are started as programs.
"""

import os
import socket
import sys
from collections.abc import Mapping

import msgspec
import setproctitle

from backends.environ import plain_environ
from gateway.host import fork_server
from gateway.host.fork_server import ForkNews
from gateway.host.shared_work import do_shared_work


def start_fork_server(environ: Mapping[str, str]) -> tuple[socket.socket, int]:
    """Return this end of its channel, and its process id. Raises `OSError` if it cannot start."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        words = [sys.executable, "-m", __name__, str(theirs.fileno()), str(os.getpid())]
        files = (
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), theirs.fileno()),  # which it then inherits
        )
        try:
            pid = os.posix_spawn(sys.executable, words, plain_environ(environ), file_actions=files)
        except OSError:
            ours.close()
            raise
    return ours, pid


def main(descriptor: str, host: str) -> None:
    """Import shared modules, report ready, and fork children; in a child, run the order."""
    channel = socket.socket(fileno=int(descriptor))
    do_shared_work()
    if fork_server.has_threads():  # started by a `sitecustomize`: forks would lose them
        return
    setproctitle.setproctitle("breakeven fork server")
    channel.send(msgspec.json.encode(ForkNews(ready=True)))
    fork_server.run(channel, int(host))


if __name__ == "__main__":
    main(*sys.argv[1:])
