"""A minimal binding to Linux io_uring: one write in flight, durable on completion.

A kernel worker does the write (IOSQE_ASYNC), so submitting does not wait for a file system;
RWF_DSYNC makes it durable before completion. It needs Linux 5.6; seccomp profiles of containers
mostly refuse it. The C library has no functions for these system calls. The memory must stay valid
until completion. This side caches its queue indices and leaves constant fields in the queue, so a
write takes two stores and a call, its completion two loads and a store.
"""

import ctypes
import errno
import mmap
import os
import struct

_SETUP, _ENTER = 425, 426  # the same on every machine
_ENTRIES = 1  # so each write is at the queue's first place
_ENDS = 2  # the kernel has twice as many
_SINGLE_MMAP = 1
_OFF_SQES = 0x10000000
_GET_EVENTS = 1
_WRITE = 23
_ASYNC = 1 << 4
_DSYNC = 2
_PARAMS_BYTES = 120
_FEATURES = struct.Struct("<I")  # at 20
_SQ_OFFSETS = struct.Struct("<IIIIIII")  # head, tail, mask, entries, flags, dropped, array
_CQ_OFFSETS = struct.Struct("<IIIIII")  # head, tail, mask, entries, overflow, entries' place
_SQE = struct.Struct("<BBHiQQIIQ24x")  # operation, flags, -, file, offset, address, size, rw flags
_SPAN, _SPAN_AT = struct.Struct("<QQI"), 8  # fields that differ between writes to a file
_CQE = struct.Struct("<QiI")
_WORD_BYTES = 4


class UringWrites:
    """An io_uring for one write at a time. `told` is a file that is readable on completion.

    Raises `OSError` if the kernel refuses.
    """

    def __init__(self) -> None:
        if ctypes.sizeof(ctypes.c_void_p) != 8 or struct.pack("=I", 1) != struct.pack("<I", 1):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        # A call that never waits keeps the interpreter's lock: releasing costs more than the call.
        self._call_at_once = ctypes.PyDLL(None, use_errno=True).syscall
        self._call.restype = self._call_at_once.restype = ctypes.c_long
        params = ctypes.create_string_buffer(_PARAMS_BYTES)
        self.told = self._call(ctypes.c_long(_SETUP), ctypes.c_long(_ENTRIES), params)
        if self.told < 0:
            raise _last_error()
        os.set_inheritable(self.told, False)
        try:
            self._map_queues(bytes(params))
        except BaseException:
            os.close(self.told)
            raise
        self._file = -1  # that the queue's place has
        self._tail = self._head = 0  # of writes and of their ends: what this side moves
        none, one, ring = ctypes.c_long(0), ctypes.c_long(1), ctypes.c_long(self.told)
        number, wait = ctypes.c_long(_ENTER), ctypes.c_long(_GET_EVENTS)
        self._submit_one = (number, ring, one, none, none)  # without flags no more is looked at
        self._wait_for_one = (number, ring, none, one, wait, None, none)

    def start_write(self, file: int, address: int, size: int, offset: int) -> None:
        """Start a write while none is in flight. Raises `OSError` if the kernel refuses it."""
        if file != self._file:
            _SQE.pack_into(self._entries, 0, _WRITE, _ASYNC, 0, file, 0, 0, 0, _DSYNC, 0)
            self._file = file
        _SPAN.pack_into(self._entries, _SPAN_AT, offset, address, size)
        tail = self._tail
        self._tail = self._words[self._sq_tail] = (tail + 1) & 0xFFFFFFFF
        if self._call_at_once(*self._submit_one) < 0:
            error = _last_error()
            self._tail = self._words[self._sq_tail] = tail
            raise error

    def ended(self, *, wait: bool) -> int | None:
        """Return the bytes written, a negative error number, or `None` if not completed."""
        head, words = self._head, self._words
        while head == words[self._cq_tail]:
            if not wait:
                return None
            if self._call(*self._wait_for_one) < 0:
                error = _last_error()
                if error.errno != errno.EINTR:
                    raise error
        result: int = self._results[self._first_result + ((head & self._cq_mask) << 2)]
        self._head = words[self._cq_head] = (head + 1) & 0xFFFFFFFF
        return result

    def close(self) -> None:
        self._words.release()
        self._results.release()
        self._queue.close()
        self._entries.close()
        os.close(self.told)

    def _map_queues(self, params: bytes) -> None:
        (features,) = _FEATURES.unpack_from(params, 20)
        if not features & _SINGLE_MMAP:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        _, sq_tail, _, _, _, _, places = _SQ_OFFSETS.unpack_from(params, 40)
        cq_head, cq_tail, cq_mask, _, _, cq_entries = _CQ_OFFSETS.unpack_from(params, 80)
        sizes = (places + _WORD_BYTES * _ENTRIES, cq_entries + _ENDS * _CQE.size)
        self._queue = mmap.mmap(self.told, max(sizes), flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self._entries = mmap.mmap(
            self.told, _ENTRIES * _SQE.size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE,
            offset=_OFF_SQES,
        )  # fmt: skip
        # Access by words: each is stored atomically, as the kernel reads them.
        self._words = memoryview(self._queue).cast("I")
        self._results = memoryview(self._queue).cast("i")
        self._words[places // _WORD_BYTES] = 0
        self._sq_tail, self._cq_head, self._cq_tail = (
            place // _WORD_BYTES for place in (sq_tail, cq_head, cq_tail)
        )
        self._cq_mask = self._words[cq_mask // _WORD_BYTES]
        self._first_result = cq_entries // _WORD_BYTES + 2  # behind its 8 bytes of the asker's


def _last_error() -> OSError:
    error = ctypes.get_errno()
    return OSError(error, os.strerror(error))
