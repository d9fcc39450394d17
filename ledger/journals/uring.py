"""Linux's io_uring, as far as a journal needs it: one write under way, durable when it has ended.

The kernel takes a write to a worker of its own (IOSQE_ASYNC), so asking for it waits for no file
system; RWF_DSYNC makes what was written durable before it ends. 5.6 and later have it; containers'
seccomp profiles mostly refuse it. The C library has no functions for these system calls. The memory
that is written must stay until the end is told. Of the two queues' places those that this side
moves are known here, so a write costs two stores and a call, its end a load and two.
"""

import ctypes
import errno
import mmap
import os
import struct

_SETUP, _ENTER = 425, 426  # the same on every machine
_ENTRIES = 2
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
_CQE = struct.Struct("<QiI")
_WORD = struct.Struct("<I")


class UringWrites:
    """`told` is a file that is ready to be read while a write's end is unheard.

    Raises `OSError` where the kernel refuses.
    """

    _tail: int  # of the queue of writes, and
    _head: int  # of the queue of ends: what this side moves
    _sq_mask: int
    _cq_mask: int

    def __init__(self) -> None:
        if ctypes.sizeof(ctypes.c_void_p) != 8 or struct.pack("=I", 1) != struct.pack("<I", 1):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long
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
        none, one, ring = ctypes.c_long(0), ctypes.c_long(1), ctypes.c_long(self.told)
        number, wait = ctypes.c_long(_ENTER), ctypes.c_long(_GET_EVENTS)
        self._submit_one = (number, ring, one, none, none, None, none)
        self._wait_for_one = (number, ring, none, one, wait, None, none)

    def start_write(self, file: int, address: int, size: int, offset: int) -> None:
        """Begin it, nothing else being under way; raises `OSError` if the kernel refuses."""
        tail = self._tail
        _SQE.pack_into(
            self._entries, (tail & self._sq_mask) * _SQE.size, _WRITE, _ASYNC, 0, file, offset,
            address, size, _DSYNC, 0,
        )  # fmt: skip
        self._tail = (tail + 1) & 0xFFFFFFFF
        _WORD.pack_into(self._queue, self._sq_tail, self._tail)
        if self._call(*self._submit_one) < 0:
            error = _last_error()
            self._tail = tail
            _WORD.pack_into(self._queue, self._sq_tail, tail)
            raise error

    def ended(self, *, wait: bool) -> int | None:
        """Return how much was written, or an error's number below 0; None: not ended yet."""
        head = self._head
        while head == _WORD.unpack_from(self._queue, self._cq_tail)[0]:
            if not wait:
                return None
            if self._call(*self._wait_for_one) < 0:
                error = _last_error()
                if error.errno != errno.EINTR:
                    raise error
        entry = self._cq_entries + (head & self._cq_mask) * _CQE.size
        result: int = _CQE.unpack_from(self._queue, entry)[1]
        self._head = (head + 1) & 0xFFFFFFFF
        _WORD.pack_into(self._queue, self._cq_head, self._head)
        return result

    def close(self) -> None:
        self._queue.close()
        self._entries.close()
        os.close(self.told)

    def _map_queues(self, params: bytes) -> None:
        (features,) = _FEATURES.unpack_from(params, 20)
        if not features & _SINGLE_MMAP:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        _, self._sq_tail, mask, _, _, _, places = _SQ_OFFSETS.unpack_from(params, 40)
        self._cq_head, self._cq_tail, cq_mask, _, _, self._cq_entries = _CQ_OFFSETS.unpack_from(
            params, 80
        )
        sizes = (places + 4 * _ENTRIES, self._cq_entries + 2 * _ENTRIES * _CQE.size)
        self._queue = mmap.mmap(self.told, max(sizes), flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self._entries = mmap.mmap(
            self.told, _ENTRIES * _SQE.size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE,
            offset=_OFF_SQES,
        )  # fmt: skip
        for place in range(_ENTRIES):
            _WORD.pack_into(self._queue, places + 4 * place, place)
        self._tail = self._head = 0  # of a new ring
        (self._sq_mask,) = _WORD.unpack_from(self._queue, mask)
        (self._cq_mask,) = _WORD.unpack_from(self._queue, cq_mask)


def _last_error() -> OSError:
    error = ctypes.get_errno()
    return OSError(error, os.strerror(error))
