"""Decoder process: forks one confined child for each audio file that a worker sends.

It starts with an empty environment and one socket. It never reads audio itself, so that it imports
FFmpeg once and each child starts clean. It ends when the worker closes the socket.
"""

import array
import io
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

from gateway.sound.confinement import HostConfinement, confine_child, confine_host
from gateway.sound.decoded_sound import DecodedSound, DecodeLimits, encode_line, read_limits
from gateway.sound.decoding import decode_sound

MESSAGE_BYTES = 512
LATE, CRASHED = b"late\n", b"crashed\n"  # in place of a result
_FILTERED, _UNFILTERED = 0, 3  # exit codes of the first child
_OVER_LIMIT = 4


@dataclass(slots=True)
class _Job:
    """Child that decodes; `until_s` is its monotonic deadline."""

    number: int
    pid: int
    result: int
    until_s: float
    is_late: bool = False


def main() -> None:
    """Serve the socket whose descriptor is the only argument."""
    with socket.socket(fileno=int(sys.argv[1])) as worker:
        # One decode loads what FFmpeg and Python load late: children can open nothing.
        decode_sound(io.BytesIO(_test_sound()), len(_test_sound()))
        confinement = HostConfinement(network=confine_host(), calls=_first_child())
        worker.send(json.dumps(asdict(confinement)).encode())
        DecoderHost(worker).serve()


class DecoderHost:
    """Children of one worker's decoder."""

    def __init__(self, worker: socket.socket) -> None:
        self._worker = worker
        self._jobs: dict[int, _Job] = {}  # by descriptor of the child's process
        self._selector = selectors.DefaultSelector()
        self._selector.register(worker, selectors.EVENT_READ)

    def serve(self) -> None:
        """Fork, end and report children until the worker closes the socket."""
        while True:
            for key, _ in self._selector.select(self._patience_s()):
                if key.fileobj is not self._worker:
                    self._finish(key.fd)
                elif not self._receive():
                    for job in self._jobs.values():
                        os.kill(job.pid, signal.SIGKILL)
                    return
            for job in self._jobs.values():
                if job.until_s <= time.monotonic() and not job.is_late:
                    self._end(job)

    def _patience_s(self) -> float | None:
        left = (job.until_s for job in self._jobs.values() if not job.is_late)
        until_s = min(left, default=None)
        return None if until_s is None else max(0.0, until_s - time.monotonic())

    def _end(self, job: _Job) -> None:
        job.is_late = True
        os.kill(job.pid, signal.SIGKILL)

    def _receive(self) -> bool:
        """Handle a message of the worker; return False if the worker is gone."""
        text, descriptors, _, _ = socket.recv_fds(self._worker, MESSAGE_BYTES, 2)
        word, _, rest = text.partition(b" ")
        if not text:
            return False
        number, _, limits = rest.partition(b" ")
        if word == b"end":
            for job in self._jobs.values():
                if job.number == int(number):
                    self._end(job)
        elif word == b"job" and len(descriptors) == 2:
            self._start(int(number), read_limits(limits), *descriptors)
        return True

    def _start(self, number: int, limits: DecodeLimits, sound: int, result: int) -> None:
        try:
            pid = os.fork()
        except OSError:
            _tell(result, CRASHED)
            os.close(result)
            os.close(sound)
            return
        if pid == 0:
            self._worker.close()
            self._selector.close()
            for descriptor, job in self._jobs.items():  # pipes of other requests' results
                os.close(descriptor)
                os.close(job.result)
            _run_child(limits, sound, result)
        os.close(sound)
        watched = os.pidfd_open(pid)
        self._jobs[watched] = _Job(number, pid, result, time.monotonic() + limits.wall_s)
        self._selector.register(watched, selectors.EVENT_READ)

    def _finish(self, watched: int) -> None:
        self._selector.unregister(watched)
        os.close(watched)
        job = self._jobs.pop(watched)
        _, status = os.waitpid(job.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if job.is_late or code in {-signal.SIGXCPU, _OVER_LIMIT}:
            _tell(job.result, LATE)
        elif code:
            _tell(job.result, CRASHED)
        os.close(job.result)


def _run_child(limits: DecodeLimits, sound: int, result: int) -> None:
    """Decode, write the result, and end this process."""
    code = 1
    try:
        confine_child(limits)
        file = _MemoryFile(sound)
        decoded = decode_sound(file, file.size, limits.longest_ms)
        os.write(result, encode_line(decoded))
        code = 0
    except (MemoryError, OverflowError):
        code = _OVER_LIMIT
    finally:
        os._exit(code)


class _MemoryFile(io.RawIOBase):
    """Audio in anonymous memory, read by system calls; mapping it would count twice."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.lseek(descriptor, 0, os.SEEK_END)
        self._at = 0

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = self.size - self._at if size is None or size < 0 else size
        piece = os.pread(self._descriptor, max(0, wanted), self._at)
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _first_child() -> bool:
    """Decode once under full confinement; return whether system calls are filtered."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            is_filtered = confine_child(DecodeLimits(cpu_s=5, wall_s=5.0))
            if decode_sound(io.BytesIO(_test_sound()), len(_test_sound())) == _TEST_LENGTH:
                code = _FILTERED if is_filtered else _UNFILTERED
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in {_FILTERED, _UNFILTERED}:
        raise RuntimeError(f"a confined child cannot decode: it ended with {code}")
    return code == _FILTERED


_TEST_LENGTH = DecodedSound(500, 500)


def _test_sound() -> bytes:
    """Return half a second of silence: WAV, 8 kHz, mono, 16 bit."""
    samples = bytes(array.array("h", bytes(8000)))
    fmt = bytes.fromhex("10000000 0100 0100 401f0000 803e0000 0200 1000")
    head = b"WAVEfmt " + fmt + b"data" + len(samples).to_bytes(4, "little")
    return b"RIFF" + (len(head) + len(samples)).to_bytes(4, "little") + head + samples


def _tell(result: int, line: bytes) -> None:
    with suppress(OSError):  # the worker may have gone on without it
        os.write(result, line)
