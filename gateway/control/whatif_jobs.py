"""Jobs that compute a what-if on a running host: one at a time, each in its own process.

A what-if takes a core for seconds to minutes, so no worker computes it. The worker that is asked
starts `gateway.whatif.job` with low priority, and every worker reads its progress from files in a
folder of the run directory. A kernel lock, held by starter and process, shows whether a job runs:
it is released when they end. The inputs are sent over standard input, which stays open: if the
worker dies, its what-if ends, too.
"""

import fcntl
import logging
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ledger.host_notes import read_note, write_note
from ledger.locks import is_locked

WHAT_IFS = "whatif"  # in the run directory
KEPT = 8  # jobs whose results are kept
LIMIT_S = 600.0
REQUESTS, REQUESTS_MOST = 20_000, 200_000
IN_FORCE = "in-force"
_LOCK, _ASKED, _TOLD, _PROGRESS, _LOG = "lock", "asked.json", "told.json", "progress.json", "log"
_CANCELLED = "cancelled.json"

_TRIES, _PAUSE_S = 20, 0.01
_LOOK_S = 0.2  # interval of the starter's check for a cancellation

log = logging.getLogger(__name__)


class WhatIfRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Inputs of a what-if. `sets` are (name, YAML or `in-force`) pairs; the first is new."""

    sets: tuple[tuple[str, str], ...]
    ledger: str
    models: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    times: float = 1.0
    most: int | None = None
    seed: int = 1


class WhatIfJobSpec(msgspec.Struct, frozen=True):
    """Inputs of the process. `settings` is the configuration as JSON."""

    question: WhatIfRequest
    settings: dict[str, Any]
    now_us: int


class WhatIfProgress(msgspec.Struct, frozen=True):
    """Progress: `done` of `of` requests over all sets; 0 of 0 while they are being read."""

    doing: str = "starts"
    done: int = 0
    of: int = 0


class WhatIfResult(msgspec.Struct, frozen=True):
    """Either the document of `gateway.whatif`, or the reason why there is none."""

    result: dict[str, Any] | None = None
    fault: str | None = None


class WhatIfCancelled(msgspec.Struct, frozen=True):
    by: str


class WhatIfJob(msgspec.Struct, frozen=True):
    job: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    by: str
    since_us: int
    question: WhatIfRequest


class WhatIfBusy(Exception):
    """Another what-if is running on this host."""


class WhatIfRunner:
    """A host's what-if jobs. `environ` is for their processes, with the ledger's address.

    The folder of a job is the last argument of `command`.
    """

    def __init__(
        self,
        run_dir: Path,
        environ: Mapping[str, str],
        command: Sequence[str] = (sys.executable, "-m", "gateway.whatif.job"),
    ) -> None:
        self.folder = run_dir / WHAT_IFS
        self._environ = environ
        self._command = command

    def start_job(self, order: WhatIfJobSpec, by: str) -> str:
        """Start a job and return its name. Raises `WhatIfBusy`."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _acquire_lock(lock)
            self._forget()
            asked = WhatIfJob(secrets.token_hex(16), by, order.now_us, order.question)
            place = self.folder / asked.job
            place.mkdir(mode=0o700)
            write_note(place / _ASKED, asked)
            process = self._start(place, lock)
        finally:
            os.close(lock)  # the process has it
        given = msgspec.json.encode(order) + b"\n"
        watch = threading.Thread(
            target=_watch_process, args=(process, given, place), name="what-if", daemon=True
        )
        watch.start()
        return asked.job

    def job_status(self, job: str | None) -> dict[str, Any] | None:
        """Return the state of a job, by default the newest; `None` if there is no such job."""
        asked = self._find_job(job)
        if asked is None:
            return None
        place = self.folder / asked.job
        told, known = (
            read_note(place / _TOLD, WhatIfResult),
            read_note(place / _PROGRESS, WhatIfProgress),
        )
        if told is None and not self._runs(asked.job):
            told = read_note(place / _TOLD, WhatIfResult) or WhatIfResult(
                fault="its process has ended: ask once more"
            )
        state = "running" if told is None else self._end_state(asked.job, told)
        return {
            "job": asked.job,
            "state": state,
            "by": asked.by,
            "since_us": asked.since_us,
            "asked": msgspec.to_builtins(asked.question),
            "progress": msgspec.to_builtins(known or WhatIfProgress()),
            "fault": None if told is None else told.fault,
            "result": None if told is None else told.result,
        }

    def _end_state(self, job: str, told: WhatIfResult) -> str:
        if told.result is not None:
            return "done"
        return "cancelled" if (self.folder / job / _CANCELLED).exists() else "failed"

    def cancel(self, job: str, by: str) -> dict[str, Any] | None:
        """Cancel a job, whichever worker started it; an ended job does not change.

        The worker that started it ends its process within `_LOOK_S`. Returns `None` if there is no
        such job.
        """
        found = self.job_status(job)
        if found is None or found["state"] != "running":
            return found
        write_note(self.folder / job / _CANCELLED, WhatIfCancelled(by))
        return self.job_status(job)

    def _runs(self, job: str) -> bool:
        """Return whether the job runs; only the newest one can."""
        newest = self._find_job(None)
        locked = is_locked(self.folder / _LOCK)
        return locked and newest is not None and newest.job == job

    def _find_job(self, job: str | None) -> WhatIfJob | None:
        if job is not None:
            found = self.folder / job / _ASKED
            return read_note(found, WhatIfJob) if len(job) == 32 and job.isalnum() else None
        known = self._known_jobs()
        return known[-1] if known else None

    def _known_jobs(self) -> list[WhatIfJob]:
        """Return the jobs, oldest first."""
        found = [read_note(path, WhatIfJob) for path in self.folder.glob(f"*/{_ASKED}")]
        return sorted(
            [job for job in found if job is not None],
            key=lambda job: job.since_us,
        )

    def _forget(self) -> None:
        for name in self._known_jobs()[: -(KEPT - 1)]:
            shutil.rmtree(self.folder / name.job, ignore_errors=True)

    def _start(self, place: Path, lock: int) -> "subprocess.Popen[bytes]":
        with (place / _LOG).open("wb") as out:
            return subprocess.Popen(  # noqa: S603 - of our own
                [*self._command, str(place)],
                stdin=subprocess.PIPE, stdout=out, stderr=out, env=self._environ,
                pass_fds=(lock,), start_new_session=True,
            )  # fmt: skip


def progress(place: Path, now: WhatIfProgress) -> None:
    write_note(place / _PROGRESS, now)


def write_result(place: Path, told: WhatIfResult) -> None:
    write_note(place / _TOLD, told)


def _watch_process(process: "subprocess.Popen[bytes]", given: bytes, place: Path) -> None:
    """Send the inputs to the process, and end it when it is due."""
    assert process.stdin is not None
    fault = None
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(given)
            process.stdin.flush()
        fault = _await_end(process, place)
        if fault is not None:
            process.kill()
            process.wait()
        elif process.returncode:
            fault = "it failed; the host's operator finds why in its log"
            log.error("simulation failed exit_code=%s log=%s", process.returncode, place / _LOG)
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
    if fault is not None and not (place / _TOLD).exists():
        with suppress(FileNotFoundError):
            write_result(place, WhatIfResult(fault=fault))


def _await_end(process: "subprocess.Popen[bytes]", place: Path) -> str | None:
    """Wait for the end of the process. Return why it must be killed, or `None` if it ended."""
    until_s = time.monotonic() + LIMIT_S
    while time.monotonic() < until_s:
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(_LOOK_S, LIMIT_S))
            return None
        if (word := read_note(place / _CANCELLED, WhatIfCancelled)) is not None:
            return f"it was cancelled by {word.by}"
    return f"it took longer than {LIMIT_S:g} s and was ended: ask for fewer requests"


def _acquire_lock(lock: int) -> None:
    """Acquire the lock, with retries: a reader may hold it for microseconds."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return
    raise WhatIfBusy
