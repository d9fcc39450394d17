"""A minimal binding to Linux asynchronous I/O (`io_submit`): fdatasync and its completion.

The C library has no functions for these system calls, so they are called by number. The kernel
copies the arguments before a call returns: nothing here must outlive a call.
"""

import ctypes
import errno
import os
import platform
from contextlib import suppress

_NUMBERS = {  # io_setup, io_destroy, io_getevents, io_submit
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
}
_FDSYNC = 3
_TELL = 1  # by the eventfd named in the same structure
MOST = 16  # operations under way at once


class _Iocb(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("file", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("told", ctypes.c_uint32),
    )


class _Event(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_uint64),
        ("operation", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("further", ctypes.c_int64),
    )


class AioContext:
    """An asynchronous I/O context. `told` is a file that becomes readable on a completion.

    Raises `OSError` where the kernel lacks these calls.
    """

    def __init__(self) -> None:
        machine = platform.machine()
        if machine not in _NUMBERS or ctypes.sizeof(ctypes.c_void_p) != 8:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._setup, self._destroy, self._get, self._submit = map(ctypes.c_long, _NUMBERS[machine])
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long
        self._context = ctypes.c_ulong(0)
        self._call_library(self._setup, ctypes.c_long(MOST), ctypes.byref(self._context))
        self.told = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._asked = _Iocb(opcode=_FDSYNC, flags=_TELL, told=self.told)
        self._list = (ctypes.c_void_p * 1)(ctypes.addressof(self._asked))
        self._events = (_Event * MOST)()
        self._one, self._most = ctypes.c_long(1), ctypes.c_long(MOST)
        self._none = ctypes.c_long(0)

    def fdatasync(self, file: int) -> None:
        """Start an fdatasync. Raises `OSError` if the kernel refuses it."""
        self._asked.file = file
        self._call_library(self._submit, self._context, self._one, self._list)

    def reap_operations(self, *, wait: bool) -> list[int]:
        """Return the error number, or 0, of each completed operation; with `wait`, at least one."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.told)
        least = self._one if wait else self._none
        count = self._call_library(self._get, self._context, least, self._most, self._events, None)
        return [-event.result for event in self._events[:count]]

    def close(self) -> None:
        self._call_library(self._destroy, self._context)
        os.close(self.told)

    def _call_library(self, *call: object) -> int:
        result: int = self._call(*call)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
