"""One part of a long run: schedules of a seed, played into a journal, judged in each database.

A drawn schedule takes Hypothesis three times as long as its play, so that each one comes back
`AGAIN` times: its calls in another order, with those of another, under another price and limit.
"""

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

from adversary_books import AdversaryLedger, faults_in_books, write_books
from adversary_calls import AdversarySchedule
from adversary_judge import faults_of
from adversary_kinds import KINDS, mixed
from adversary_prices import limit_pusd
from adversary_report import BoundReport
from adversary_world import AdversaryWorld
from hypothesis import HealthCheck, Phase, given, seed, settings

from ledger.database import make_engine, migrate, sqlite_url

AGAIN = 3
MIXED = "mixed"


@dataclass(slots=True)
class PartResult:
    """What a part came to; faults are texts that begin with their invariant."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    bounds: BoundReport = field(default_factory=BoundReport)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "counts": dict(self.counts),
            "faults": self.faults[:100],
            "bounds": self.bounds.as_json(),
            "seconds": round(self.seconds, 1),
        }


def play_part(folder: Path, number: int, count: int, urls: dict[str, str]) -> PartResult:
    """Half of the parts by kind, half of all kinds mixed. `urls`: migrated, empty databases."""
    began, result = time.monotonic(), PartResult()
    (folder / "world").mkdir(parents=True)
    world, ledger = AdversaryWorld(folder / "world"), AdversaryLedger(folder / "played")
    kinds = {MIXED: mixed()} if number % 2 else KINDS
    each = -(-count // len(kinds))
    try:
        for kind, strategy in kinds.items():
            for schedule in drawn_and_recombined(strategy, each, number + crc32(kind.encode())):
                _play_one(world, ledger, result, kind, schedule)
        ledger.end()
    finally:
        world.close()
    for name, url in urls.items():
        engine = make_engine(url, keep_open=True)
        write_books(ledger, engine, folder / name)
        faults = faults_in_books(ledger, engine)
        result.faults += [f"{name}: {fault}" for fault in faults]
        engine.dispose()
    result.counts["attempts"] = len(ledger.sent)
    result.seconds = time.monotonic() - began
    return result


def _play_one(
    world: AdversaryWorld,
    ledger: AdversaryLedger,
    result: PartResult,
    kind: str,
    schedule: AdversarySchedule,
) -> None:
    results = ledger.play(world, schedule)
    faults = faults_of(schedule, results)
    result.faults += [f"{kind}, schedule {len(ledger.schedules)}: {fault}" for fault in faults]
    result.counts["schedules"] += 1
    for call in results:
        result.counts["calls"] += 1
        if call.refused is not None:
            result.counts["refused"] += 1
        elif kind != MIXED:
            result.bounds.add(kind, call)


def drawn_and_recombined(strategy: Any, count: int, number: int) -> Iterator[AdversarySchedule]:
    drawn = draw(strategy, max(2, -(-count // (1 + AGAIN))), number)
    random, left = Random(number), count
    for schedule in drawn:
        variants = (recombine(schedule, random.choice(drawn), random) for _ in range(AGAIN))
        for variant in (schedule, *variants):
            if left:
                left -= 1
                yield variant


def draw(strategy: Any, count: int, number: int) -> list[AdversarySchedule]:
    drawn: list[AdversarySchedule] = []

    @seed(number)
    @settings(
        deadline=None, max_examples=count, phases=(Phase.generate,), database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def keep(schedule: AdversarySchedule) -> None:
        drawn.append(schedule)

    keep()
    return drawn


def recombine(
    schedule: AdversarySchedule, other: AdversarySchedule, random: Random
) -> AdversarySchedule:
    """Calls of both in any order, at the price of the other; both are of one kind.

    Pictures are billed by the rule of the price that they were drawn with.
    """
    if schedule.terms.image_rule != other.terms.image_rule:
        other = schedule
    calls = [*schedule.calls, *random.sample(other.calls, random.randint(0, len(other.calls)))]
    random.shuffle(calls)
    ample, part = random.randrange(3), random.random()
    limit = limit_pusd(other.terms, calls, part=None if ample else part)
    return AdversarySchedule(other.terms, limit, tuple(calls))


@contextmanager
def sqlite_copy(folder: Path) -> Iterator[str]:
    """A migrated, empty database beside others of the run."""
    template = folder.parent / "empty.db"
    if not template.exists():
        draft = folder / "draft.db"
        migrate(sqlite_url(draft))
        draft.rename(template)
    path = folder / "ledger.db"
    shutil.copyfile(template, path)
    yield sqlite_url(path)
