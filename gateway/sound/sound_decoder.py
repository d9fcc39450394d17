"""Client of a worker for audio durations: `SoundDecoder.decode`.

The decoder process starts with the first audio file, so workers without transcriptions have none.
"""

import asyncio
import fcntl
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Protocol

from gateway.sound.decoded_sound import (
    LINE_BYTES,
    DecodedSound,
    DecodeLimits,
    encode_line,
    limits_for,
    read_sound,
)
from gateway.sound.fair_places import FairPlaces

CHILDREN, OF_TEAM = 3, 2  # children per worker, and per team
QUEUE_S = 60.0
START_S = 30.0  # of the process: 0.5 s here from disk
GRACE_S = 5.0  # beyond a child's own limit, before the whole process is ended
RETRY_START_S = 30.0
TRIES = 2
_CRASHED = b"crashed\n"
_MESSAGE_BYTES = 512
_IN_THREAD_BYTES = 256 * 1024
_ROOT = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.insert(0, sys.argv.pop()); import gateway.sound.decoder_host as host"

log = logging.getLogger("breakeven.sound")


class SoundLengths(Protocol):
    """Decoder of audio durations, implemented by `SoundDecoder` and `TeamSounds`."""

    async def decode(self, sound: bytes) -> DecodedSound | None: ...

    async def aclose(self) -> None: ...


class DecoderBusyError(Exception):
    """Error: no decoder was free in time; the audio was not examined."""


class DecoderUnavailableError(Exception):
    """Error: the decoder process did not start, or it ended."""


class SoundDecoder:
    """Decoder of one worker.

    At most `CHILDREN` files are decoded at a time; others wait up to `QUEUE_S`, teams in turn.
    """

    def __init__(
        self,
        limits: Callable[[int], DecodeLimits] = limits_for,
        *,
        queue_s: float = QUEUE_S,
        command: Sequence[str] | None = None,
    ) -> None:
        self._limits, self._queue_s = limits, queue_s
        self._command = tuple(command or _default_command())
        self._places = FairPlaces(CHILDREN, OF_TEAM)
        self._starting = asyncio.Lock()
        self._host: _HostProcess | None = None
        self._failed_s: float | None = None
        self._number = 0

    @property
    def pid(self) -> int | None:
        """Return the id of the decoder process, `None` before the first file."""
        return None if self._host is None else self._host.pid

    def of_team(self, team: str) -> "TeamSounds":
        """Return the decoder for one team's files."""
        return TeamSounds(self, team)

    async def decode(self, sound: bytes, team: str = "") -> DecodedSound | None:
        """Return the decoded duration, or `None` if there is none within the limits.

        A crashed child is retried once, because the kernel may have ended it for lack of memory.
        Raises `DecoderBusyError` if no decoder was free in time.
        """
        try:
            async with self._places.place(team, self._queue_s):
                for _ in range(TRIES):
                    line = await self._line(sound)
                    if line != _CRASHED:
                        return read_sound(line)
        except TimeoutError:
            log.warning("sound was not decoded: all decoders are busy queue_s=%s", self._queue_s)
            raise DecoderBusyError from None
        except (DecoderUnavailableError, OSError) as error:
            log.warning("sound was not decoded error=%s", error)
        return None

    async def aclose(self) -> None:
        """End the decoder process and its children."""
        host, self._host = self._host, None
        if host is not None:
            await host.aclose()

    async def _line(self, sound: bytes) -> bytes:
        """Return the line that the child or its parent wrote, or that of a crash."""
        host = await self._running()
        limits = self._limits(len(sound))
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            try:
                memory = await _in_memory(sound)
                self._number = number = self._number + 1
                host.send(b"job %d " % number + encode_line(limits), memory, write)
            finally:
                os.close(write)
            return await self._result(host, number, read, limits.wall_s + GRACE_S)
        except ConnectionError:  # the process ended before it got the sound
            await host.aclose()
            return _CRASHED
        finally:
            os.close(read)

    async def _result(self, host: "_HostProcess", number: int, pipe: int, wall_s: float) -> bytes:
        try:
            async with asyncio.timeout(wall_s):
                line = await _read_all(pipe)
        except TimeoutError:
            log.warning("stopping the decoder: a child exceeded its time wall_s=%s", wall_s)
            await host.aclose()
            return b""
        except asyncio.CancelledError:  # the client disconnected
            with suppress(OSError):
                host.send(b"end %d" % number)
            raise
        if not line:  # the process ended with its children
            await host.aclose()
        return line or _CRASHED

    async def _running(self) -> "_HostProcess":
        async with self._starting:
            if self._host is not None and self._host.is_alive:
                return self._host
            now_s = asyncio.get_running_loop().time()
            if self._failed_s is not None and now_s - self._failed_s < RETRY_START_S:
                raise DecoderUnavailableError("it failed to start a moment ago")
            await self.aclose()
            try:
                self._host = await _started(self._command)
            except (OSError, TimeoutError, DecoderUnavailableError) as error:
                self._failed_s = now_s
                raise DecoderUnavailableError(
                    f"it does not start: {error or type(error).__name__}"
                ) from error
            self._failed_s = None
            return self._host


class TeamSounds:
    """Decoder whose files wait in their team's queue; implements `SoundLengths`."""

    __slots__ = ("_decoder", "_team")

    def __init__(self, decoder: SoundDecoder, team: str) -> None:
        self._decoder, self._team = decoder, team

    async def decode(self, sound: bytes) -> DecodedSound | None:
        return await self._decoder.decode(sound, self._team)

    async def aclose(self) -> None:
        await self._decoder.aclose()


def sounds_for(sounds: SoundLengths, team: str) -> SoundLengths:
    """Return a decoder for a team's files; only `SoundDecoder` has a queue per team."""
    return sounds.of_team(team) if isinstance(sounds, SoundDecoder) else sounds


class _HostProcess:
    """Decoder process and the socket to it."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process, self._connection = process, connection

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None and self._connection.fileno() >= 0

    def send(self, text: bytes, *descriptors: int) -> None:
        """Send one message with descriptors; those of memory are closed here afterwards."""
        try:
            if self._connection.fileno() < 0:
                raise ConnectionError("the decoder's process was ended")
            socket.send_fds(self._connection, [text], descriptors)
        finally:
            for descriptor in descriptors[:1]:
                os.close(descriptor)

    async def aclose(self) -> None:
        self._connection.close()
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)


def _default_command() -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", f"{_START}; host.main()")


async def _started(command: Sequence[str]) -> _HostProcess:
    """Start the process with an empty environment and wait until it is confined."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    errors = os.memfd_create("errors", os.MFD_CLOEXEC)  # a pipe could fill up
    with theirs, os.fdopen(errors, "w+b", buffering=0) as said:
        process = subprocess.Popen(  # noqa: S603, ASYNC220  (fork and exec of a few ms)
            [*command, str(theirs.fileno()), str(_ROOT)],
            env={}, cwd="/", pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
        theirs.close()  # so that its end is seen
        host = _HostProcess(process, ours)
        try:
            hello = await _first_message(ours, said)
        except BaseException:
            await host.aclose()
            raise
    confinement = json.loads(hello)
    if not all(confinement.values()):
        log.warning("the decoder is confined by resource limits only confinement=%s", confinement)
    return host


async def _first_message(connection: socket.socket, said: FileIO) -> bytes:
    async with asyncio.timeout(START_S):
        hello = await asyncio.get_running_loop().sock_recv(connection, _MESSAGE_BYTES)
    if not hello:
        raise DecoderUnavailableError(_last_line(said))
    return hello


def _last_line(said: FileIO) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:_MESSAGE_BYTES] if lines else "it ended without a word"


async def _in_memory(sound: bytes) -> int:
    """Return a sealed memory file with the audio, which no process can change."""
    if len(sound) <= _IN_THREAD_BYTES:
        return _written(sound)
    writing = asyncio.ensure_future(asyncio.to_thread(_written, sound))
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:  # the thread goes on; nobody else closes its descriptor
        writing.add_done_callback(_close_result)
        raise


def _close_result(writing: "asyncio.Future[int]") -> None:
    if not writing.cancelled() and writing.exception() is None:
        os.close(writing.result())


def _written(sound: bytes) -> int:
    memory = os.memfd_create("sound", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        left = memoryview(sound)
        while left:
            left = left[os.write(memory, left) :]
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(memory)
        raise
    return memory


async def _read_all(pipe: int) -> bytes:
    """Return the bytes up to the end of the pipe, at most one line."""
    loop, got, done = asyncio.get_running_loop(), bytearray(), asyncio.Event()

    def take() -> None:
        try:
            piece = os.read(pipe, LINE_BYTES + 1)
        except BlockingIOError:
            return
        got.extend(piece[: LINE_BYTES + 1 - len(got)])
        if not piece:
            done.set()

    loop.add_reader(pipe, take)
    try:
        await done.wait()
    finally:
        loop.remove_reader(pipe)
    return bytes(got)
