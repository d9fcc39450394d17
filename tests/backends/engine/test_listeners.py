"""The kernel tells by port who listens, as /proc/net does by listing everybody."""

import socket

import pytest

from backends.engine import listeners, ports
from backends.engine.listeners import listening_sockets

HERE = [
    (socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1"),
    (socket.AF_INET6, "::"), (socket.AF_INET6, "::ffff:127.0.0.1"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "address"), HERE)
def test_a_listening_socket_is_told_as_proc_lists_it(family: int, address: str) -> None:
    with socket.socket(family) as listener, socket.socket(family) as client:
        try:
            listener.bind((address, 0))
        except OSError:
            pytest.skip("no IPv6 here")
        port = listener.getsockname()[1]
        assert listening_sockets(port) == []  # bound, and it does not listen
        listener.listen()
        client.connect((address, port))
        told = listening_sockets(port)
        assert told == list(ports._listed_sockets(port))
        (found,) = told
        assert found.address == socket.inet_pton(family, address)
        assert listening_sockets(client.getsockname()[1]) == []


def test_two_that_share_a_port_are_two() -> None:
    with socket.socket() as first, socket.socket() as second:
        for listener in (first, second):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        first.bind(("127.0.0.1", 0))
        second.bind(first.getsockname())
        for listener in (first, second):
            listener.listen()
        assert len(set(listening_sockets(first.getsockname()[1]))) == 2


def test_where_the_kernel_does_not_tell_proc_does(monkeypatch) -> None:
    """Sandboxes know no such sockets."""
    monkeypatch.setattr(listeners, "_SOCK_DIAG", 99)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match="not supported"):
            listening_sockets(port)
        assert len(ports._listening_inodes(port)) == 1


def test_an_error_of_the_kernel_is_one(monkeypatch) -> None:
    monkeypatch.setattr(listeners, "_BY_FAMILY", 77)
    with pytest.raises(OSError, match="does not report"):
        listening_sockets(1)
