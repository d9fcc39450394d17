"""Actuator that runs an operator's program to start, stop and list engines.

The calls are `start TOKEN PLACE`, `stop TOKEN PLACE` and `list POOL`. Only the configuration file
on disk names the program; it runs without a shell. It sees variables without secrets and those that
the configuration names. Time and output are limited, and its process group ends with it. Its stderr
is discarded, because it may contain secrets. `list` prints a JSON array: `[{"name": "i-0a1",
"token": "chat.0.k3", "place": 0}]`; `token` and `place` may be missing. `ends_s` (seconds since the
epoch) announces the end of a spot instance.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

import msgspec

from backends.environ import plain_environ
from gateway.config.schema_scale import ActuatorSection
from gateway.scaling.actuator import ActuatorError, ListedInstance

LONGEST = 1024 * 1024  # maximum bytes of a list
PLACES = 10_000
LOOK_S = 0.1  # between checks whether a silent program has ended


Word = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class CommandListing(msgspec.Struct, frozen=True):
    """Engine in the program's list."""

    name: Word
    token: Word | None = None
    place: int | None = None
    ends_s: Annotated[float, msgspec.Meta(ge=0, le=1e11)] | None = None


class CommandActuator:
    """Implementation of `FleetActuator` with a program."""

    ordered = False
    adopts = False

    def __init__(self, section: ActuatorSection, pool: str, environ: Mapping[str, str]) -> None:
        self._section, self._pool = section, pool
        named = {name: environ[name] for name in section.env if name in environ}
        self._environ = plain_environ(environ) | named

    def start(self, token: str, place: int) -> None:
        self._run("start", token, str(place))

    def stop(self, token: str, place: int) -> None:
        self._run("stop", token, str(place))

    def list(self) -> list[ListedInstance]:
        try:
            found = msgspec.json.decode(self._run("list", self._pool), type=list[CommandListing])
        except msgspec.MsgspecError as error:
            raise ActuatorError(f"{self._name} list printed no list of engines: {error}") from None
        if any(item.place is not None and not 0 <= item.place < PLACES for item in found):
            raise ActuatorError(f"{self._name} list printed a place that is not a place of a pool")
        if not all(f"{item.name}{item.token or ''}".isprintable() for item in found):
            raise ActuatorError(
                f"{self._name} list printed a name or token with control characters"
            )
        return [
            ListedInstance(
                item.name,
                item.token,
                item.place,
                None if item.ends_s is None else round(item.ends_s * 1e6),
            )
            for item in found
        ]

    @property
    def _name(self) -> str:
        return self._section.argv[0]

    def _run(self, verb: str, *words: str) -> bytes:
        until_s = time.monotonic() + self._section.timeout_s
        try:
            process = subprocess.Popen(  # noqa: S603  (no shell; the words are the operator's)
                [*self._section.argv, verb, *words], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self._environ,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ActuatorError(f"cannot run {self._name}: {error.strerror}") from None
        try:
            said = _read(process, until_s)
            code = process.wait(max(0.0, until_s - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            words_of = f"{self._name} {verb} was not done within {self._section.timeout_s:g} s"
            raise ActuatorError(words_of) from None
        finally:
            _end(process)
        if code:
            words_of = f"{self._name} {verb} ended with {code}; run it by hand to see why"
            raise ActuatorError(words_of)
        return said


def _read(process: subprocess.Popen[bytes], until_s: float) -> bytes:
    """Return the output. Raises `TimeoutError`, and `ActuatorError` if it is too long.

    Child processes may hold the output open: reading ends when the program has ended.
    """
    assert process.stdout is not None
    poll, said = select.poll(), b""
    poll.register(process.stdout.fileno(), select.POLLIN)
    while True:
        ended = process.poll() is not None
        left_s = 0.0 if ended else min(LOOK_S, max(0.0, until_s - time.monotonic()))
        if not poll.poll(left_s * 1000):
            if ended:
                return said
            if time.monotonic() >= until_s:
                raise TimeoutError
            continue
        part = os.read(process.stdout.fileno(), 65_536)
        if not part:
            return said
        said += part
        if len(said) > LONGEST:
            raise ActuatorError(f"the program printed more than {LONGEST} bytes")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and its children, which have a process group of their own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
