"""Confinement of the decoder's processes, applied before they read any audio.

`confine_host` is for the process that forks, `confine_child` for each of its children. Kernel
limits always apply. A network namespace and a system call filter are used where the kernel allows
them; `HostConfinement` says which are active.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.sound.decoded_sound import DecodeLimits

_SET_PDEATHSIG, _SET_NO_NEW_PRIVS, _SET_SECCOMP = 1, 38, 22  # linux/prctl.h
_FILTER = 2
_NEWUSER, _NEWNET, _NEWIPC = 0x10000000, 0x40000000, 0x08000000  # linux/sched.h
_NICE = 10

# System calls that decoding needs, with their numbers on x86_64 and on aarch64. All others fail
# with EPERM: opening, sockets, new processes and threads, signals, other processes' memory.
CALLS = (
    ("read", 0, 63),
    ("write", 1, 64),
    ("close", 3, 57),
    ("fstat", 5, 80),
    ("lseek", 8, 62),
    ("mmap", 9, 222),
    ("mprotect", 10, 226),
    ("munmap", 11, 215),
    ("brk", 12, 214),
    ("rt_sigaction", 13, 134),
    ("rt_sigprocmask", 14, 135),
    ("rt_sigreturn", 15, 139),
    ("pread64", 17, 67),
    ("sched_yield", 24, 124),
    ("mremap", 25, 216),
    ("madvise", 28, 233),
    ("getpid", 39, 172),
    ("exit", 60, 93),
    ("sigaltstack", 131, 132),
    ("gettid", 186, 178),
    ("futex", 202, 98),
    ("sched_getaffinity", 204, 123),
    ("clock_gettime", 228, 113),
    ("clock_nanosleep", 230, 115),
    ("exit_group", 231, 94),
    ("set_robust_list", 273, 99),
    ("getrandom", 318, 278),
    ("rseq", 334, 293),
)
_ARCHITECTURES = {"x86_64": (0xC000003E, 1), "aarch64": (0xC00000B7, 2)}  # linux/audit.h; column
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
_ALLOW, _EPERM, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # linux/seccomp.h

_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class HostConfinement:
    """Confinement that depends on the kernel: network namespace and system call filter."""

    network: bool
    calls: bool


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def confine_host() -> bool:
    """Drop network and privileges; return whether a network namespace was created."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    os.nice(_NICE)
    apart: int = _LIBC.unshare(_NEWUSER | _NEWNET | _NEWIPC)
    _LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    return apart == 0


def confine_child(limits: DecodeLimits) -> bool:
    """Set the limits of one child; return whether its system calls are filtered.

    Open descriptors stay usable, and no new one can be opened.
    """
    _LIBC.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    _limit(resource.RLIMIT_AS, limits.memory_bytes)
    _limit(resource.RLIMIT_NOFILE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    return _filter_calls()


def _limit(kind: int, most: int) -> None:
    resource.setrlimit(kind, (most, most))


def _filter_calls() -> bool:
    code = call_filter(platform.machine())
    if not code:
        return False
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    return bool(_LIBC.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0)


def call_filter(machine: str) -> bytes:
    """Return a BPF program that allows `CALLS` and returns EPERM for all others.

    Calls of another architecture end the process. The result is empty for an unknown machine.
    """
    if machine not in _ARCHITECTURES:
        return b""
    architecture, column = _ARCHITECTURES[machine]
    allowed = [int(call[column]) for call in CALLS]
    count = len(allowed)
    steps = [
        (_LOAD, 0, 0, 4),  # seccomp_data.arch
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # seccomp_data.nr
        *((_JUMP_EQUAL, count - place, 0, call) for place, call in enumerate(allowed)),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)
