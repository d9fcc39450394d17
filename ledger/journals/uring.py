"""Linux's io_uring, as far as a journal needs it: one write under way, durable when it has ended.

The kernel takes a write to a worker of its own (`IOSQE_ASYNC`), so asking for it waits for no file
system; RWF_DSYNC makes what was written durable before it ends. 5.6 and later have it; containers'
seccomp profiles mostly refuse it. The C library has no functions for these system calls. The memory
that is written must stay until the end is told.
"""

import ctypes
import errno
import mmap
import os
import struct
from contextlib import suppress

_SETUP, _ENTER, _REGISTER = 425, 426, 427  # the same on every machine
_ENTRIES = 2
_SINGLE_MMAP = 1
_OFF_SQES = 0x10000000
_REGISTER_EVENTFD = 4
_GET_EVENTS = 1
_WRITE = 23
_ASYNC = 1 << 4
_DSYNC = 2
_PARAMS_BYTES = 120
_FEATURES = struct.Struct("<I")  # at 20
_SQ_OFFSETS = struct.Struct("<IIIIIII")  # head, tail, mask, entries, flags, dropped, array
_CQ_OFFSETS = struct.Struct("<IIIIII")  # head, tail, mask, entries, overflow, entries' place
_SQE = struct.Struct("<BBHiQQIIQ24x")  # operation, flags, -, file, offset, address, size, rw flags
_CQE = struct.Struct("<QiI")
_WORD = struct.Struct("<I")


class UringWrites:
    """`told` is a file that can be read when a write ended. Raises `OSError` where refused."""

    def __init__(self) -> None:
        if ctypes.sizeof(ctypes.c_void_p) != 8 or struct.pack("=I", 1) != struct.pack("<I", 1):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long
        params = ctypes.create_string_buffer(_PARAMS_BYTES)
        self._file = self._call_kernel(_SETUP, ctypes.c_long(_ENTRIES), params)
        os.set_inheritable(self._file, False)
        try:
            self._map_queues(bytes(params))
            self.told = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except BaseException:
            os.close(self._file)
            raise
        told = ctypes.byref(ctypes.c_int(self.told))
        self._call_kernel(
            _REGISTER, ctypes.c_long(self._file), ctypes.c_long(_REGISTER_EVENTFD), told,
            ctypes.c_long(1),
        )  # fmt: skip
        self._ring, self._none = ctypes.c_long(self._file), ctypes.c_long(0)
        self._one, self._wait = ctypes.c_long(1), ctypes.c_long(_GET_EVENTS)

    def start_write(self, file: int, address: int, size: int, offset: int) -> None:
        """Begin it, nothing else being under way; raises `OSError` if the kernel refuses."""
        (tail,) = _WORD.unpack_from(self._queue, self._sq_tail)
        place = tail & self._sq_mask
        _SQE.pack_into(
            self._entries, place * _SQE.size, _WRITE, _ASYNC, 0, file, offset, address, size,
            _DSYNC, 0,
        )  # fmt: skip
        _WORD.pack_into(self._queue, self._sq_array + 4 * place, place)
        _WORD.pack_into(self._queue, self._sq_tail, (tail + 1) & 0xFFFFFFFF)
        try:
            self._enter(self._one, self._none, self._none)
        except OSError:
            _WORD.pack_into(self._queue, self._sq_tail, tail)
            raise

    def ended(self, *, wait: bool) -> int | None:
        """Return how much was written, or an error's number below 0; None: not ended yet."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.told)
        while True:
            (head,) = _WORD.unpack_from(self._queue, self._cq_head)
            if head != _WORD.unpack_from(self._queue, self._cq_tail)[0]:
                break
            if not wait:
                return None
            with suppress(InterruptedError):
                self._enter(self._none, self._one, self._wait)
        entry = self._cq_entries + (head & self._cq_mask) * _CQE.size
        _, result, _ = _CQE.unpack_from(self._queue, entry)
        _WORD.pack_into(self._queue, self._cq_head, (head + 1) & 0xFFFFFFFF)
        return int(result)

    def close(self) -> None:
        self._queue.close()
        self._entries.close()
        os.close(self._file)
        os.close(self.told)

    def _map_queues(self, params: bytes) -> None:
        (features,) = _FEATURES.unpack_from(params, 20)
        if not features & _SINGLE_MMAP:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        _, tail, mask, _, _, _, self._sq_array = _SQ_OFFSETS.unpack_from(params, 40)
        self._cq_head, self._cq_tail, cq_mask, _, _, self._cq_entries = _CQ_OFFSETS.unpack_from(
            params, 80
        )
        sizes = (self._sq_array + 4 * _ENTRIES, self._cq_entries + 2 * _ENTRIES * _CQE.size)
        self._queue = mmap.mmap(self._file, max(sizes), flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self._entries = mmap.mmap(
            self._file, _ENTRIES * _SQE.size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE,
            offset=_OFF_SQES,
        )  # fmt: skip
        self._sq_tail = tail
        (self._sq_mask,) = _WORD.unpack_from(self._queue, mask)
        (self._cq_mask,) = _WORD.unpack_from(self._queue, cq_mask)

    def _enter(self, submit: ctypes.c_long, least: ctypes.c_long, flags: ctypes.c_long) -> None:
        self._call_kernel(_ENTER, self._ring, submit, least, flags, None, self._none)

    def _call_kernel(self, number: int, *given: object) -> int:
        result: int = self._call(ctypes.c_long(number), *given)
        if result < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return result
