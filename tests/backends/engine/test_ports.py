"""Who listens on a port, by the kernel's tables."""

import os
import socket
import subprocess
import sys

import pytest

from backends.engine.ports import is_free, is_served_by, other_listener

LISTEN = """
import socket, sys
one = socket.socket({family})
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
one.bind(("{host}", {port}))
one.listen()
print(one.getsockname()[1], flush=True)
sys.stdin.read()
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.fixture
def listening():
    """Processes that listen: `listening(port=0)` gives (process, port)."""
    made: list[subprocess.Popen[str]] = []

    def start(port: int = 0, host: str = "127.0.0.1", *, below: bool = False):
        family = "socket.AF_INET6" if ":" in host else "socket.AF_INET"
        code = LISTEN.format(port=port, host=host, family=family)
        words = [PARENT, code] if below else [code]
        process = subprocess.Popen(
            [sys.executable, "-c", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        made.append(process)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    yield start
    for process in made:
        process.communicate("")


def test_a_port_that_nobody_has(free_port):
    assert is_free(free_port)
    assert other_listener(free_port) is None
    assert not is_served_by(free_port, os.getpid())


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_a_listener_belongs_to_its_process_and_is_a_stranger_to_others(listening, host):
    process, port = listening(host=host)
    assert is_served_by(port, process.pid)
    assert other_listener(port, process.pid) is None
    assert not is_served_by(port, process.pid + 1)
    assert other_listener(port).startswith(f"process {process.pid} (")
    assert not is_free(port)


def test_a_listener_below_a_process_is_its_own(listening):
    process, port = listening(below=True)
    assert is_served_by(port, process.pid)
    assert other_listener(port, process.pid) is None
    assert is_served_by(port, os.getpid())


def test_a_shared_port_is_nobodys_alone(listening):
    process, port = listening()
    other, _ = listening(port)
    assert not is_served_by(port, process.pid)
    assert other_listener(port, process.pid).startswith(f"process {other.pid} (")


def test_who_listens_on_every_address_is_not_reached_where_one_listens_here(listening):
    ours, port = listening()
    listening(port, "0.0.0.0")
    assert is_served_by(port, ours.pid)


def test_what_an_ended_server_left_behind_is_no_obstacle():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            server.accept()[0].close()  # the server's side waits in TIME_WAIT from here on
            client.recv(1)
    assert is_free(port)
