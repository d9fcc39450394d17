"""L5: the disk of the journals (on SQLite of the books too) is filled to its last byte, and freed.

Needs the right to mount a tmpfs. What cannot be recorded is refused before it is dispatched.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from account import settle
from crowd import Crowd, Manner, statuses
from scene import Given, Scene, SceneFigures
from stage import MissingPart, Stage

TIMES, SIZE_MIB, FULL_S = 20, 64, 4.0
HEALED_S = 30.0


def play(given: Given) -> SceneFigures:
    found, times, healed = SceneFigures(), given.of(TIMES), []
    refused = 0
    with Stage(given, "dispatched unrecorded") as stage, small_disk(stage.folder) as disk:
        books = {} if given.database == "postgres" else {"url": f"sqlite:///{disk / 'ledger.db'}"}
        host = stage.host(state=disk / "host", **({"ledger": books} if books else {}))
        host.start()
        crowd = Crowd([host], [host.token], Manner(leaves=0.03), seed=given.seed)
        crowd.start()
        time.sleep(1.0)
        for number in range(times):
            until_s = time.monotonic() + FULL_S
            while time.monotonic() < until_s:  # what comes free is taken, too
                fill(disk / "filler")
                time.sleep(0.1)
            (disk / "filler").unlink()
            healed.append(until_served(crowd))
            time.sleep(1.0)
            given.say(f"{number + 1} of {times} full, {crowd.finished} answers finished")
        said = crowd.stop()
        settle(host.ledger, said, stage.upstream.entries, found)
        refused = sum(line.status == 503 for line in said)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    found.size = f"a disk of {SIZE_MIB} MiB full {times} times"
    found.expect("refused while it was full", refused, holds=refused > 0)
    found.expect("served again after s", round(max(healed), 1), holds=max(healed) <= HEALED_S)
    found.figures["answers"] = statuses(said)
    return found


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    place = folder / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(place)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise MissingPart("`mount` is missing") from error
    if made.returncode:
        raise MissingPart(f"a small disk cannot be mounted: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(path: Path) -> None:
    """To the last byte that one can write."""
    with path.open("ab", buffering=0) as filler:
        for size in (1024 * 1024, 4096, 1):
            try:
                while True:
                    filler.write(os.urandom(size) if size > 1 else b"x")
            except OSError:
                continue


def until_served(crowd: Any) -> float:
    began, wall = time.monotonic(), time.time()
    while time.monotonic() < began + 2 * HEALED_S:
        if any(line.finished and line.begun_s > wall
               for caller in crowd.callers for line in caller.said[-50:]):  # fmt: skip
            break
        time.sleep(0.05)
    return time.monotonic() - began


SCENES = (
    Scene(
        "L5", "L5", "the disk is full", play, "what cannot be recorded is dispatched all the same"
    ),
)
