"""L9: processes that are stopped for longer than anybody waits, and then go on as if nothing was.

A worker that stands still is not dead: its journal is locked, so nobody settles for it. What it
settles when it goes on is booked once.
"""

import signal
import time
from collections import Counter

from account import settle
from crowd import Crowd, Manner, statuses
from scene import Given, Scene, SceneFigures
from scene_kills import MODULES
from stage import Stage, strike

TRIALS = 200
SHORT_S, LONG_S = (0.5, 2.5), 20.0
LONG_EACH = 20  # one trial in so many is a long one


def play(given: Given) -> SceneFigures:
    rng, found, trials = given.rng, SceneFigures(), given.of(TRIALS)
    stopped: Counter[str] = Counter()
    with Stage(given, "leases") as stage:
        host = stage.host()
        host.start()
        crowd = Crowd([host], [host.token], Manner(tokens=(20, 200)), seed=given.seed)
        crowd.start()
        for trial in range(trials):
            what = rng.choice(("worker", "worker", "writer"))
            pids = host.pids(MODULES[what])
            long = trial % LONG_EACH == LONG_EACH - 1 or trials == trial + 1 < LONG_EACH
            pid = rng.choice(pids)
            strike(pid, signal.SIGSTOP)
            time.sleep(LONG_S if long else rng.uniform(*SHORT_S))
            strike(pid, signal.SIGCONT)
            stopped[f"{what}{', long' if long else ''}"] += 1
            time.sleep(rng.uniform(0.1, 0.6))
            if (trial + 1) % 10 == 0:
                given.say(f"{trial + 1} of {trials} trials, {crowd.finished} answers finished")
        said = crowd.stop()
        books = settle(host.ledger, said, stage.upstream.entries, found)
        given_up = sum(row["status"] == "lost" or row["flag"] == "late" for row in books.attempts)
        found.expect("settled for a living one", given_up, holds=given_up == 0)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(stopped.items()))
    found.size = f"{trials} pauses of {SHORT_S[0]} to {LONG_S:.0f} s ({kinds})"
    found.figures["answers"] = statuses(said)
    return found


SCENES = (Scene("L9", "L9", "processes stopped and let go on", play, "a pause counts as a death"),)
