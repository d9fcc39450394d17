"""POWER and CUT: the power fails, by a log of every write that reached the disk.

POWER plays one worker's journal on ext4, XFS and Btrfs, and a cut at every flush of the disk: with
nothing of what was written since the flush before, with all of it, with some of it in any order.
CUT plays a whole host whose state, journals and ledger (on PostgreSQL the server's data) are on
such a disk. The product's own command drains what a cut leaves, then three accounts are joined.

Needs root, FUSE and loop devices. `--jobs` processes share the cuts.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
from account import join, read
from crowd import CallerRecord, Crowd, Manner, statuses
from journal_parts import (
    BadDisk,
    DiskImage,
    NoDisk,
    PowerCut,
    PowerCuts,
    mounted_image,
    play_power_cuts,
)
from scene import Given, Scene, SceneFigures
from stage import ROOT, SERVE, MissingPart, PostgresServer, Stage, eventually

ATTEMPTS, KINDS = 2_000, ("ext4", "xfs", "btrfs")
CUTS, LOAD_S = 600, 20.0
DISK_MIB = {"sqlite": 192, "postgres": 512}
SHOWN = 5
_NEW_MOUNTS_AND_NETWORK = 0x00020000 | 0x40000000
_PRIVATE = 0x4000 | 0x40000  # mounts made here are seen here alone
# The machine behind a cut is this one, with the same boot id.
OTHER_BOOT = """
from pathlib import Path
from ledger.journals import mark
mark.BOOT_ID = Path({path!r})
"""


def play(given: Given) -> SceneFigures:
    found = SceneFigures(lost=0)
    options = "nobarrier" if given.broken else ""
    for kind in ("ext4",) if given.broken else KINDS:  # the others take no such option
        with tempfile.TemporaryDirectory(prefix="breakeven-power-", dir=_memory()) as name:
            try:
                result = play_power_cuts(
                    Path(name), attempts=given.of(ATTEMPTS, least=60), kind=kind, options=options,
                    seed=given.seed, jobs=given.jobs,
                )  # fmt: skip
            except NoDisk as missing:
                raise MissingPart(str(missing)) from missing
        given.say(f"{kind}: {result.cuts} cuts, {result.lost} lost, {result.told} told")
        for fault in result.faults[:SHOWN]:
            given.say(fault)
        found.lost = (found.lost or 0) + result.lost
        found.figures[f"{kind}: acknowledged"] = result.acknowledged
        found.figures[f"{kind}: flushes"] = result.flushes
        found.figures[f"{kind}: cuts"] = result.cuts
        found.figures[f"{kind}: cuts with findings"] = result.told
    found.size = f"every flush of {given.of(ATTEMPTS, least=60)} attempts on {', '.join(KINDS)}"
    return found


@dataclass(frozen=True, slots=True)
class _Server:
    """A PostgreSQL whose data are on the disk, and how it is started."""

    command: list[str]
    options: dict[str, Any]
    folder: Path

    @contextmanager
    def run(self, url: str) -> Iterator[None]:
        """Recover from what a cut left, as after any crash; its process is none of that boot."""
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        with (self.folder / "recovery.log").open("wb") as log:
            process = subprocess.Popen(
                self.command, cwd=self.folder, stdout=log, stderr=log, **self.options
            )
        try:
            eventually(lambda: _answers(url), 60)
            yield
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(60)


@dataclass(frozen=True, slots=True)
class _PlayedHost:
    """What a whole host did on the disk, and how what a cut leaves is started."""

    disk: DiskImage
    place: Path
    config: Path
    url: str
    said: list[CallerRecord]
    entries: list[dict[str, Any]]
    environ: dict[str, str]
    server: "_Server | None"
    share: float
    seed: int
    since_s: float
    wall_s: float  # of the wall clock at 0 of the monotonic one
    parts: int


def play_host(given: Given) -> SceneFigures:
    found = SceneFigures(lost=0, duplicated=0, difference_pusd=0, overspent_pusd=0)
    with Stage(given) as stage:
        for folder in (stage.folder, *stage.folder.parents[:1]):
            folder.chmod(folder.stat().st_mode | 0o055)  # PostgreSQL's user reaches its data
        try:
            played = _host_on_bad_disk(given, stage)
        except NoDisk as missing:
            raise MissingPart(str(missing)) from missing
        found.figures["answers"] = statuses(played.said)
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            results = list(pool.map(partial(_play_cuts, played), range(given.jobs)))
    cuts = sum(count for count, _ in results)
    for _, parts in results:
        for name, red in parts:
            given.say(f"{name}: {red}")
            found.faults.append(f"{name}: {red}"[:200])
            found.lost = (found.lost or 0) + ("lost" in red)
    found.faults = found.faults[:SHOWN]
    found.size = f"{cuts} cuts under a host of two workers"
    found.expect("cuts", cuts, holds=cuts > 0)
    return found


def _host_on_bad_disk(given: Given, stage: Stage) -> _PlayedHost:
    options = "nobarrier" if given.broken else ""
    with BadDisk(stage.folder, mib=DISK_MIB[given.database], options=options) as disk:
        disk.place.chmod(0o755)
        server, url = None, f"sqlite:///{disk.place / 'ledger.db'}"
        if given.database == "postgres":
            assert stage.postgres is not None
            server = _server_on(disk.place, stage.postgres.command[0].parent)
            url = server.url(server.create())
        host = stage.host(state=disk.place / "host", ledger={"url": url})
        host.start()
        subprocess.run(["sync", "-f", str(disk.place)], check=True)  # what the stage wrote
        since_s = time.monotonic()
        crowd = Crowd([host], [host.token], Manner(leaves=0.03), callers=8, seed=given.seed)
        crowd.start()
        time.sleep(LOAD_S * min(1.0, max(0.2, given.scale)))
        said = crowd.stop()
        host.kill_all()
        if server is not None:
            server.halt()
    flushes = len(PowerCuts(disk.image).flushes)
    given.say(f"{len(said)} answers, {flushes} flushes")
    return _PlayedHost(
        disk.image, disk.place, host.config, url, said, stage.upstream.entries(),
        dict(host.environ), None if server is None else _Server(
            [str(word) for word in server.command], server.options, server.folder),
        min(1.0, given.of(CUTS, least=4) / max(1, flushes) / 3), given.seed, since_s,
        time.time() - time.monotonic(), given.jobs,
    )  # fmt: skip


def _server_on(place: Path, binaries: Path) -> Any:
    before, tempfile.tempdir = tempfile.tempdir, str(place)
    try:
        return PostgresServer(binaries, durable=True)
    finally:
        tempfile.tempdir = before


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url.replace("+psycopg", ""), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _play_cuts(played: _PlayedHost, part: int) -> tuple[int, list[tuple[str, str]]]:
    """Return how many cuts were played, and what was red behind which."""
    _enter_namespaces()
    red, count, cuts = [], 0, PowerCuts(played.disk, played.seed)
    with tempfile.TemporaryDirectory(prefix="breakeven-boot-") as name:
        site = Path(name)
        (site / "boot_id").write_text("the boot behind the cut\n")
        (site / "sitecustomize.py").write_text(OTHER_BOOT.format(path=str(site / "boot_id")))
        environ = {**played.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
        chosen = cuts.each(
            share=played.share, since_s=played.since_s, parts=played.parts, part=part
        )
        for cut in chosen:
            count += 1
            try:
                with mounted_image(cut.image, "ext4", played.place), _books(played):
                    red += [(cut.name, fault) for fault in _judge(played, cut, environ)]
            except (OSError, NoDisk) as error:  # of the file system nothing is left
                red.append((cut.name, f"everything is lost: {error}"))
    return count, red


@contextmanager
def _books(played: _PlayedHost) -> Iterator[None]:
    if played.server is None:
        yield
        return
    with played.server.run(played.url):
        yield


def _judge(played: _PlayedHost, cut: PowerCut, environ: dict[str, str]) -> list[str]:
    command = [sys.executable, "-c", SERVE, "ledger", "drain", "--config", str(played.config)]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return [f"lost: drain says {done.stderr.strip()[-200:]}"]
    books, found, until_s = read(played.url), SceneFigures(), cut.until_s + played.wall_s
    said = [line for line in played.said if line.finished and line.ended_s <= until_s]
    known = {row["attempt_id"] for row in books.attempts}
    join(said, [entry for entry in played.entries if entry["request_id"] in known], books, found)
    first = found.figures.get("the first finding", "")
    return [f"{fault} {first}".strip() for fault in found.red]


def _enter_namespaces() -> None:
    """Each part mounts its cuts at the disk's own place, and starts its server at the same port."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS_AND_NETWORK) or libc.mount(b"none", b"/", None, _PRIVATE, None):
        raise OSError(ctypes.get_errno(), "namespaces")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def _memory() -> str | None:
    """Images are written and read many times."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


SCENES = (
    Scene(
        "POWER", "section 9", "a power cut at every flush of a worker's journal", play,
        "a file system that never asks its disk to flush", databases=("sqlite",),
    ),
    Scene(
        "CUT", "section 9", "a power cut under a whole host, its ledger on the same disk",
        play_host, "a file system that never asks its disk to flush",
    ),
)  # fmt: skip
