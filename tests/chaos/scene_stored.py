"""STORED: what a caller was told is stored is there, whatever ends meanwhile.

Workers, the writer and the parent are killed while callers hold conversations, and the host's disk
is filled to its last byte. An answer that could not be stored says so (`store: false`) and binds
nobody.
"""

import time
from collections import Counter
from pathlib import Path
from typing import Any

from account import settle
from crowd import statuses
from scene import Given, Scene, SceneFigures
from scene_disk import fill, small_disk
from scene_kills import hit
from stage import Stage
from talkers import Talkers, look

CYCLES, ANSWERS = 100, 10_000
PAUSE_S = (0.3, 1.2)
STRUCK = ("worker",) * 4 + ("writer", "parent") + ("disk",) * 2
FULL_S = 3.0
FOREIGN_EACH = 5  # one answer in so many is looked at as another team, too


def play(given: Given) -> SceneFigures:
    rng, found, struck = given.rng, SceneFigures(), Counter[str]()
    with Stage(given, "stored later") as stage, small_disk(stage.folder) as disk:
        host = stage.host(state=disk / "host", ledger={"url": f"sqlite:///{disk / 'ledger.db'}"})
        host.start()
        stranger = host.key("stranger", team="stranger")
        talkers = Talkers([host], [host.token], seed=given.seed)
        talkers.start()
        began, cycles = time.monotonic(), given.of(CYCLES)
        time.sleep(1.0)
        for cycle in range(cycles):
            what = "disk" if cycle == 0 else rng.choice(STRUCK)
            if what == "disk":
                stay_full(disk / "filler")
                struck["full disk"] += 1
            else:
                struck[hit(host, what, rng)] += 1
            time.sleep(rng.uniform(*PAUSE_S))
            if (cycle + 1) % 10 == 0:
                given.say(f"{cycle + 1} of {cycles} cycles, {talkers.finished} answers stored")
        enough_s = time.monotonic() + (time.monotonic() - began)  # at most twice as long
        while talkers.finished < given.of(ANSWERS) and time.monotonic() < enough_s:
            time.sleep(0.2)
        said = talkers.stop()
        settle(host.ledger, said, stage.upstream.entries, found)
        _judge(found, talkers, host, stranger)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(struck.items()))
    found.size = f"{cycles} troubles ({kinds})"
    found.figures["answers"] = statuses(said)
    return found


def stay_full(filler: Path) -> None:
    """Keep the disk full for a while: what comes free is taken, too."""
    until_s = time.monotonic() + FULL_S
    while time.monotonic() < until_s:
        fill(filler)
        time.sleep(0.1)
    filler.unlink()


def _judge(found: SceneFigures, talkers: Talkers, host: Any, stranger: str) -> None:
    """Every answer that was told to be stored is there as it was told, for its team alone."""
    told, seen = talkers.told, talkers.seen
    gone = changed = foreign = 0
    for place, answer in enumerate(told):
        name = str(answer.document["id"])
        status, document = _settled_look(host, answer.token, name)
        gone += status != 200
        changed += status == 200 and document != answer.document
        if place % FOREIGN_EACH == 0:
            foreign += _settled_look(host, stranger, name)[0] != 404
    found.lost = (found.lost or 0) + gone
    found.expect("stored", len(told), holds=bool(told))  # or nothing was shown
    found.figures["said store: false"] = seen["not stored"]
    for what in ("gone at once", "another at once", "chain gone"):
        found.expect(what, seen[what], holds=not seen[what])
    found.expect("changed", changed, holds=not changed)
    found.expect("seen by another team", foreign, holds=not foreign)


def _settled_look(host: Any, token: str, name: str) -> tuple[int, dict[str, Any] | None]:
    """A look that is repeated where the answer cannot be reached for a moment."""
    for _ in range(20):
        status, document = look(host, token, name)
        if status != 503:
            break
        time.sleep(0.5)
    return status, document


SCENES = (
    Scene(
        "STORED", "design 9", "stored answers through kills and a full disk", play,
        "an answer is stored half a second after its end", databases=("sqlite",),
    ),
)  # fmt: skip
