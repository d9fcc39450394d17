"""The process that forks: one child for each sound, ended when it is late."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.sound.decoded_sound import DecodedSound, DecodeLimits, encode_line, read_sound
from gateway.sound.decoder_host import CRASHED, LATE

ENOUGH = DecodeLimits(cpu_s=10, wall_s=20.0)
START = "from gateway.sound import decoder_host; decoder_host.main()"
# Children that sleep in place of decoding.
STUCK = (
    "from gateway.sound import decoder_host; first = decoder_host.decode_sound; "
    "import time; decoder_host.decode_sound = lambda file, size, most=0: "
    "first(file, size) if size == 8044 else time.sleep(60); decoder_host.main()"
)


class Host:
    def __init__(self, start: str) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(30)
        with theirs:
            command = [sys.executable, "-c", start, str(theirs.fileno())]
            self.process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env={})
        self.hello = json.loads(self.socket.recv(512))

    def send(self, number: int, sound: bytes, limits: DecodeLimits = ENOUGH) -> int:
        """Return the pipe that the result comes on."""
        memory, (read, write) = os.memfd_create("test"), os.pipe()
        os.write(memory, sound)
        socket.send_fds(self.socket, [b"job %d " % number + encode_line(limits)], [memory, write])
        os.close(memory)
        os.close(write)
        return read

    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def child(self) -> int:
        while not (found := self.children()):
            pass
        return found[0]


def result(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as opened:
        return opened.read()


@pytest.fixture(params=[START])
def host(request) -> Iterator[Host]:
    found = Host(request.param)
    yield found
    found.socket.close()
    assert found.process.wait(30) == 0


stuck = pytest.mark.parametrize("host", [STUCK], indirect=True)


def test_sounds_are_decoded_side_by_side(host: Host, sounds: dict[str, bytes]) -> None:
    assert set(host.hello) == {"network", "calls"}
    pipes = [host.send(number, sounds[name]) for number, name in enumerate(("wav", "flac"))]
    assert [read_sound(result(pipe)) for pipe in pipes] == [DecodedSound(2000, 2000)] * 2


@stuck
def test_a_late_child_is_ended(host: Host) -> None:
    assert result(host.send(1, b"x", DecodeLimits(cpu_s=5, wall_s=0.05))) == LATE


@stuck
def test_a_child_is_ended_when_its_request_is(host: Host) -> None:
    pipe, other = host.send(1, b"x"), host.send(2, b"x")
    host.socket.send(b"end 1")
    assert result(pipe) == LATE
    assert len(host.children()) == 1
    host.socket.send(b"end 2")
    assert result(other) == LATE


@stuck
def test_a_killed_child_is_told(host: Host) -> None:
    pipe = host.send(1, b"x")
    os.kill(host.child(), signal.SIGKILL)
    assert result(pipe) == CRASHED


@stuck
def test_children_end_with_the_worker(host: Host) -> None:
    pipe = host.send(1, b"x")
    child = host.child()
    host.socket.close()
    assert host.process.wait(30) == 0
    assert result(pipe) == b""
    watched = Path(f"/proc/{child}/cmdline")
    while watched.exists() and watched.read_bytes():  # PR_SET_PDEATHSIG has it ended
        pass


def test_too_much_is_no_crash(host: Host, sounds: dict[str, bytes]) -> None:
    short = DecodeLimits(cpu_s=10, wall_s=20.0, longest_ms=1000)
    assert result(host.send(1, sounds["mp3"], short)) == LATE
    assert result(host.send(2, b"")) == encode_line(DecodedSound(0, 0))


def test_cpu_time_is_limited(host: Host) -> None:
    """An hour of WAV at one byte a second takes a child some seconds."""
    head = bytes.fromhex("10000000 0100 0100 01000000 01000000 0100 0800")
    size = 2_000_000
    data = b"RIFF\0\0\0\0WAVEfmt " + head + b"data" + size.to_bytes(4, "little") + bytes(size)
    assert result(host.send(1, data, DecodeLimits(cpu_s=1, wall_s=60.0))) == LATE
