"""L7: the clock of a serving machine is set an hour back and on, and slewed, over a midnight.

`clock.c` is preloaded into every process of the host: its wall clock is the machine's and what a
file says. The budget's day ends, in its time zone, within the hour that the clock is moved by.
"""

import math
import mmap
import shutil
import struct
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from account import settle
from crowd import Crowd, Manner, statuses
from scene import Given, Scene, SceneFigures
from sqlalchemy import create_engine, text
from stage import MissingPart, Stage

STEPS = 60
HOUR_NS = 3600 * 10**9
SLEWED_NS, SLEWS = 500_000, 40  # as an NTP client would: 0.5 ms at a time
LIMIT_USD = 1_000

AGAIN = """
import os
import sys

if "CHAOS_CLOCK" not in os.environ:
    environ = dict(os.environ, {names})
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)
"""


class SetClock:
    """The host's wall clock, so many nanoseconds ahead of the machine's."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("gcc") is None:
            raise MissingPart("gcc is missing: apt-get install gcc")
        self.library, self.path = folder / "clock.so", folder / "clock"
        source = Path(__file__).with_name("clock.c")
        command = ["gcc", "-shared", "-fPIC", "-O1", "-o", self.library, source, "-ldl"]
        subprocess.run(command, check=True)
        self.path.write_bytes(bytes(8))
        with self.path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 8)
        self.ahead_ns = 0

    def worn_by(self, host: Any) -> None:
        """By all its processes; it hands on no variable of ours, so each begins once more."""
        site = host.state / "site" / "sitecustomize.py"
        names = f"LD_PRELOAD={str(self.library)!r}, CHAOS_CLOCK={str(self.path)!r}"
        site.write_text(AGAIN.format(names=names) + site.read_text())

    def set(self, ahead_ns: int) -> None:
        self.ahead_ns = ahead_ns
        self._page[:] = struct.pack("=q", ahead_ns)

    def slew(self, by_ns: int) -> None:
        for _ in range(SLEWS):
            self.set(self.ahead_ns + by_ns)
            time.sleep(0.01)


def play(given: Given) -> SceneFigures:
    found, steps, rng = SceneFigures(), given.of(STEPS), given.rng
    with Stage(given, "durations by the wall") as stage:
        clock = SetClock(stage.folder)
        zone = nearly_midnight(datetime.now(UTC))
        day = {"scope": "global", "usd": LIMIT_USD, "period": "day", "hard": True,
               "timezone": zone}  # fmt: skip
        host = stage.host(budgets=[day])
        clock.worn_by(host)
        host.start()
        crowd = Crowd([host], [host.token], Manner(leaves=0.03), seed=given.seed)
        crowd.start()
        time.sleep(2.0)
        for number in range(steps):
            clock.set(rng.choice((-HOUR_NS, 0, HOUR_NS)))
            time.sleep(rng.uniform(0.3, 1.2))
            clock.slew(rng.choice((-SLEWED_NS, SLEWED_NS)))
            if (number + 1) % 10 == 0:
                given.say(f"{number + 1} of {steps} steps, {crowd.finished} answers finished")
        clock.set(0)
        said = crowd.stop()
        settle(host.ledger, said, stage.upstream.entries, found)
        judge(host.ledger, found)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    found.size = f"{steps} steps of up to 2 h, each slewed after, over a midnight"
    found.figures["answers"] = statuses(said)
    return found


def nearly_midnight(now: datetime) -> str:
    """The time zone whose day ends at the next full hour."""
    behind = (now.hour + 1) % 24  # there it is 23 o'clock; POSIX calls zones behind UTC positive
    return f"Etc/GMT+{behind}" if behind <= 12 else f"Etc/GMT-{24 - behind}"


def judge(url: str, found: SceneFigures) -> None:
    engine = create_engine(url)
    with engine.connect() as connection:

        def count(query: str) -> int:
            return int(connection.execute(text(query)).scalar_one())

        negative = count("SELECT count(*) FROM attempts WHERE duration_us < 0 OR ttft_us < 0")
        early = count("SELECT count(*) FROM attempts WHERE settled_us < opened_us")
        long = count(f"SELECT count(*) FROM attempts WHERE duration_us > {HOUR_NS // 2000}")
        windows = count("SELECT count(*) FROM budget_windows WHERE spent_pusd > 0")
        spread = count("SELECT max(opened_us) - min(opened_us) FROM attempts")
    engine.dispose()
    found.expect("negative durations", negative, holds=negative == 0)
    found.expect("durations of a step", long, holds=long == 0)
    found.expect("settled before they were opened", early, holds=early == 0)
    found.expect("windows spent from", windows, holds=windows == 2)
    seen = math.floor(spread / 3_600_000_000 * 10) / 10
    found.expect("hours that the books saw", seen, holds=seen >= 1)


SCENES: tuple[Any, ...] = (
    Scene(
        "CLOCK", "L7", "the machine's clock is set back and on under load, over a midnight", play,
        "durations are taken from the wall clock",
    ),
)  # fmt: skip
