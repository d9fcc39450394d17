"""EIO, SLOW and ROOM: a host whose state, journals and SQLite ledger are on a disk that goes bad.

Real file systems on a disk in user space: the kernel itself gives the errors, whichever way bytes
reach the disk. After errors the file system is read-only; the disk is put right, mounted anew, and
the host started again, as a person would.
"""

import errno
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from account import Books, settle
from crowd import CallerRecord, Crowd, Manner, statuses
from journal_parts import BadDisk, NoDisk
from scene import Given, Scene, SceneFigures
from scene_disk import fill, until_served
from stage import MissingPart, Stage, eventually

TIMES, BAD_S = 10, 4.0
SLOW_WRITE_US, SLOW_FLUSH_US = 2_000, 200_000
SLOWEST_S = 20.0
FAULTS = ({"write_error": errno.EIO}, {"flush_error": errno.EIO})
HEALED_S = 30.0
LATE_S = 1.0  # before a disk failed: until records are written that nobody waits for, and a margin
LACKS = "may lack"  # what `verify` says of rows that nobody has


@contextmanager
def host_on(given: Given, kind: str, sabotage: str = "") -> Iterator[tuple[Stage, BadDisk, Any]]:
    with Stage(given, sabotage) as stage:
        try:
            with BadDisk(stage.folder, kind=kind, mib=256) as disk:
                changes = {}
                if given.database == "sqlite":
                    changes["ledger"] = {"url": f"sqlite:///{disk.place / 'ledger.db'}"}
                host = stage.host(state=disk.place / "host", **changes)
                host.start()
                subprocess.run(["sync", "-f", str(disk.place)], check=True)
                try:
                    yield stage, disk, host
                finally:
                    disk.faults.order()
                    host.close()
        except NoDisk as missing:
            raise MissingPart(str(missing)) from missing


def play_errors(given: Given) -> SceneFigures:
    """The disk fails under load, at writes and at flushes in turn."""
    found, times, said, refused, spans = SceneFigures(), given.of(TIMES), [], 0, []
    with host_on(given, "ext4", "settled later") as (stage, disk, host):
        for number in range(times):
            crowd = Crowd([host], [host.token], Manner(leaves=0.03), callers=8, seed=number)
            crowd.start()
            time.sleep(BAD_S / 2)
            failed_s = time.time()
            disk.faults.order(**FAULTS[number % len(FAULTS)])
            time.sleep(BAD_S)
            if is_ready(host):
                found.expect("ready with a broken disk", 1, holds=False)
            more = crowd.stop()
            spans.append((failed_s - LATE_S, time.time()))
            refused += sum(line.status == 503 for line in more)
            said += more
            host.kill_all()
            disk.faults.order()
            disk.remount()
            host.start()
            given.say(f"{number + 1} of {times} times, {len(said)} answers")
        books = settle(host.ledger, said, stage.upstream.entries, found)
        expect_told(found, stage.upstream.entries(), said, books, spans)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    found.size = f"a disk that failed {times} times"
    found.expect("refused while it failed", refused, holds=refused > 0)
    found.figures["answers"] = statuses(said)
    return found


def play_slow(given: Given) -> SceneFigures:
    """A disk whose flushes take a fifth of a second: answers end late, and none is lost."""
    found, times = SceneFigures(), given.of(TIMES)

    def spoil(disk: BadDisk) -> None:
        disk.faults.order(write_delay_us=SLOW_WRITE_US, flush_delay_us=SLOW_FLUSH_US)
        time.sleep(BAD_S)
        disk.faults.order()

    said = _play_times(given, found, times, "ext4", spoil)
    finished = [line.ended_s - line.begun_s for line in said if line.finished]
    slowest = round(max(finished, default=0.0), 1)
    found.size = f"a slow disk {times} times"
    found.expect("slowest answer s", slowest, holds=slowest <= SLOWEST_S)
    return found


def play_room(given: Given) -> SceneFigures:
    """A copy-on-write file system is filled to its last byte, and freed."""
    found, times = SceneFigures(), given.of(TIMES)

    def spoil(disk: BadDisk) -> None:
        until_s = time.monotonic() + BAD_S
        while time.monotonic() < until_s:
            fill(disk.place / "filler")
            time.sleep(0.1)
        (disk.place / "filler").unlink()

    said = _play_times(given, found, times, "btrfs", spoil, "dispatched unrecorded")
    found.size = f"a full Btrfs {times} times"
    refused = sum(line.status == 503 for line in said)
    found.expect("refused while it was full", refused, holds=refused > 0)
    return found


def _play_times(
    given: Given, found: SceneFigures, times: int, kind: str, spoil: Callable[[BadDisk], None],
    sabotage: str = "settled later",
) -> list[Any]:  # fmt: skip
    healed = []
    with host_on(given, kind, sabotage) as (stage, disk, host):
        workers = set(host.pids("gateway.worker"))
        crowd = Crowd([host], [host.token], Manner(leaves=0.03), callers=8, seed=given.seed)
        crowd.start()
        for number in range(times):
            time.sleep(1.0)
            spoil(disk)
            healed.append(until_served(crowd))
            given.say(f"{number + 1} of {times} times, {crowd.finished} answers finished")
        said = crowd.stop()
        died = len(workers - set(host.pids("gateway.worker")))
        settle(host.ledger, said, stage.upstream.entries, found)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    found.expect("workers that died", died, holds=died == 0)
    found.expect("served again after s", round(max(healed), 1), holds=max(healed) <= HEALED_S)
    found.figures["answers"] = statuses(said)
    return said


def expect_told(
    found: SceneFigures, entries: list[dict[str, Any]], said: list[CallerRecord], books: Books,
    spans: list[tuple[float, float]],
) -> None:  # fmt: skip
    """Opens that no flush covered may be lost with a disk, where `verify` says that rows lack.

    So much and no more is excused: they were begun while the disk failed (`spans`), not before, and
    each finding is of rows that may lack.
    """
    known = {row["attempt_id"] for row in books.attempts}
    tried = {entry["request_id"] for entry in entries if entry["status"] != "refused"}
    begun = {line.request_id: line.begun_s for line in said if line.request_id}
    times = [begun.get(name.rpartition(".")[0]) for name in tried - known]
    early = sum(
        at_s is not None and not any(since <= at_s <= until for since, until in spans)
        for at_s in times
    )
    found.expect("of them begun while the disk was well", early, holds=not early)
    told = [LACKS in finding for finding in books.findings]
    if told and all(told):
        excused = [f"tries without a row {len(times)}", f"verify findings {len(told)}"]
        found.faults = [fault for fault in found.faults if fault not in excused]


def is_ready(host: Any) -> bool:
    """Whether the host says so 5 s after its disk failed; it has until then to notice."""
    try:
        eventually(lambda: host.client.get(f"{host.url}/readyz").status_code != 200, 6)
    except (AssertionError, TimeoutError):
        return True
    return False


SCENES = (
    Scene(
        "EIO", "section 9", "the disk fails at writes and flushes, is put right, and read",
        play_errors, "settles come half a second after the answer",
    ),
    Scene(
        "SLOW", "section 9", "flushes take a fifth of a second", play_slow,
        "settles come half a second after the answer, and the host is killed",
    ),
    Scene(
        "ROOM", "section 9", "a copy-on-write file system is full", play_room,
        "what cannot be recorded is dispatched all the same",
    ),
)  # fmt: skip
