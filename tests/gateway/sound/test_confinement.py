"""Rights that a decoding child has left, tried by a child that does not decode."""

import json
import platform
import struct
import subprocess
import sys

import pytest

from gateway.sound import confinement
from gateway.sound.confinement import CALLS, call_filter

# Each attempt's name and whether it succeeded, after the confinement under test.
TRIAL = """
import ctypes, json, os, resource, signal, socket, sys
from gateway.sound import confinement
from gateway.sound.decoded_sound import DecodeLimits

libc = ctypes.CDLL(None, use_errno=True)
parent, (read, write) = os.getpid(), os.pipe()
pid = os.fork()
if pid:
    os.close(write)
    print(os.read(read, 4096).decode())
    os.waitpid(pid, 0)
    sys.exit()
filtered = eval(sys.argv[1])


def tried(attempt):
    try:
        return attempt() is not False
    except (OSError, MemoryError, ValueError):
        return False


vector = (ctypes.c_ulong * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
found = {
    "open": tried(lambda: open("/etc/hostname")),
    "socket": tried(lambda: socket.socket()),
    "fork": tried(lambda: os.fork() or os._exit(0)),
    "exec": tried(lambda: libc.execve(b"/nowhere", None, None) < 0 and ctypes.get_errno() == 2),
    "signal": tried(lambda: os.kill(parent, 0)),
    "ptrace": tried(lambda: libc.ptrace(0x4206, parent, 0, 0) == 0),
    "memory": tried(lambda: bytearray(2 << 30)),
    "limits": tried(lambda: resource.getrlimit(resource.RLIMIT_CPU) == (5, 6)),
    "filtered": filtered,
}
os.write(write, json.dumps(found).encode())
os._exit(0)
"""


def trial(confined: str) -> dict[str, object]:
    answer = subprocess.run(
        [sys.executable, "-c", TRIAL, confined], check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout)


def test_a_child_can_open_start_signal_and_read_nothing() -> None:
    found = trial("confinement.confine_child(DecodeLimits(cpu_s=5, wall_s=5.0))")
    if found.pop("filtered"):
        assert found == dict.fromkeys(found, False)
    assert not found["open"]
    assert not found["socket"]
    assert not found["memory"]


def test_the_attempts_succeed_without_confinement() -> None:
    """The control: each attempt above is one that a process may make."""
    found = trial("False")
    for name in ("open", "socket", "fork", "exec", "signal"):
        assert found[name], name


def test_the_limits_alone_close_files_and_network() -> None:
    """A machine without a filter has the limits."""
    found = trial(
        "setattr(confinement, '_filter_calls', lambda: False) "
        "or confinement.confine_child(DecodeLimits(cpu_s=5, wall_s=5.0))"
    )
    assert [found[name] for name in ("filtered", "open", "socket", "memory")] == [False] * 4
    assert found["limits"]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_its_calls_and_no_other(machine: str) -> None:
    column = {"x86_64": 1, "aarch64": 2}[machine]
    allowed = {call[column] for call in CALLS}
    architecture = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
    code = call_filter(machine)
    for number in range(600):
        verdict = run(code, architecture, number)
        assert verdict == (0x7FFF0000 if number in allowed else 0x00050001), number
    assert run(code, 0x40000003, 1) == 0x80000000  # calls of 32 bits


def run(code: bytes, architecture: int, number: int) -> int:
    """What the kernel does with such a program."""
    steps = list(struct.iter_unpack("<HBBI", code))
    at = value = 0
    while True:
        kind, if_equal, otherwise, operand = steps[at]
        at += 1
        if kind == 0x20:
            value = {0: number, 4: architecture}[operand]
        elif kind == 0x15:
            at += if_equal if value == operand else otherwise
        else:
            return operand


def test_a_machine_without_a_filter_is_known() -> None:
    assert call_filter("riscv64") == b""
    assert platform.machine() not in ("x86_64", "aarch64") or call_filter(platform.machine())
    assert confinement.HostConfinement(network=True, calls=False) != (True, False)
