"""L1, L2: SIGKILL of random processes under load, and what was in flight when they died."""

import time
from collections import Counter
from typing import Any

from account import settle
from crowd import Crowd, Manner, statuses
from scene import Given, Scene, SceneFigures
from stage import Stage, eventually, restart, strike

CYCLES = 300
FINISHED = 50_000
PAUSE_S = (0.4, 1.6)
STRUCK = ("worker",) * 5 + ("writer",) * 3 + ("telemetry", "parent")
MODULES = {
    "worker": "gateway.worker", "writer": "ledger.writer", "telemetry": "gateway.host.telemetry",
}  # fmt: skip
RECOVERY_S = 30.0


def play(given: Given) -> SceneFigures:
    rng, found = given.rng, SceneFigures()
    cycles, wanted = given.of(CYCLES), given.of(FINISHED)
    struck: Counter[str] = Counter()
    with Stage(given, "settled later") as stage:
        host = stage.host()
        host.start()
        manner = Manner(leaves=0.05)
        crowd = Crowd([host], [host.token], manner, seed=given.seed, journal=stage.folder / "said")
        crowd.start()
        began = time.monotonic()
        for cycle in range(cycles):
            time.sleep(rng.uniform(*PAUSE_S))
            struck[hit(host, rng.choice(STRUCK), rng)] += 1
            if (cycle + 1) % 20 == 0:
                given.say(f"{cycle + 1} of {cycles} cycles, {crowd.finished} answers finished")
        enough_s = time.monotonic() + (time.monotonic() - began)  # at most twice as long
        while crowd.finished < wanted and time.monotonic() < enough_s and not given.broken:
            time.sleep(0.5)
        said = crowd.stop()
        settle(host.ledger, said, stage.upstream.entries, found)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(struck.items()))
    found.size = f"{cycles} kills ({kinds})"
    found.figures["answers"] = statuses(said)
    late = float(found.figures["quiet after s"])
    found.expect("all in the books after s", late, holds=late <= RECOVERY_S)
    return found


def hit(host: Any, what: str, rng: Any) -> str:
    """Kill one of them; whoever serves may be struck again, but never the last one."""
    if what == "parent":
        restart(host)
        return what
    module = MODULES[what]
    strike(rng.choice(eventually(lambda: host.pids(module), 60)))
    eventually(lambda: host.pids(module), 60)
    return what


SCENES = (
    Scene(
        "L1", "L1, L2", "processes killed under load, half of the answers streams", play,
        "settled half a second after the answer",
    ),
)  # fmt: skip
