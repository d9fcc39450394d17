"""Has the kernel refuse io_uring to this process and its children, as sandboxes do (seccomp)."""

import ctypes
import errno
import os
import struct

_LOAD_NUMBER = 0x20  # a word of what was called: its number is the first
_JUMP_IF_EQUAL = 0x15
_RETURN = 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
SETUP = 425


def refuse_uring() -> None:
    steps = b"".join(
        struct.pack("<HBBI", *step)
        for step in (
            (_LOAD_NUMBER, 0, 0, 0),
            (_JUMP_IF_EQUAL, 0, 1, SETUP),
            (_RETURN, 0, 0, _ERRNO | errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    program = ctypes.create_string_buffer(steps, len(steps))
    given = struct.pack("<HxxxxxxQ", len(steps) // 8, ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, given, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
