"""DAMAGE: every bit, block and byte of journals of 50 records, in the books of either database.

At full size every bit is flipped, every block of 512 bytes zeroed, repeated, written over the next
and swapped with it, every byte cut out and everything behind it cut off; of journals that were
closed, whose worker was killed, and whose worker lives and writes on. `--jobs` processes share it.
"""

import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from journal_parts import DamagePlan, plan_damage, play_damage, spans_of
from scene import Given, Scene, SceneFigures
from stage import Stage

from ledger.database import make_engine, migrate, sqlite_url

CASES_AT_ONCE = 200
SHOWN = 5  # of what is wrong
FAST_DISK = Path("/dev/shm")


def play(given: Given) -> SceneFigures:
    found, cases, wrong = SceneFigures(), Counter[str](), Counter[str]()
    with Stage(given, "", target=False) as stage, _folder() as folder:
        spans = spans_of(folder)
        plans = list(plan_damage(spans, given.scale, given.seed, CASES_AT_ONCE))
        migrated = stage.new_url("migrated.db")
        migrate(migrated)
        task = partial(
            _play_plan, migrated=migrated, folder=folder, spans=spans, silent=given.broken
        )
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            for number, (plan, told) in enumerate(pool.map(task, plans)):
                cases += Counter(f"{kind}, {plan.state}" for kind, _ in plan.cases)
                wrong[plan.state] += len(told)
                for fault in told[:SHOWN]:
                    given.say(f"{plan.state}: {fault}")
                if (number + 1) % 50 == 0:
                    given.say(f"{sum(cases.values())} cases, {sum(wrong.values())} wrong")
    found.size = f"{sum(cases.values())} damaged journals of 50 records"
    found.figures |= dict(cases)
    found.lost = sum(wrong.values())
    return found


def _play_plan(
    plan: DamagePlan, *, migrated: str, folder: Path, spans: list[tuple[int, int]], silent: bool
) -> tuple[DamagePlan, list[str]]:
    logging.disable()  # each finding is a line of the log
    with _folder(folder) as mine, _books(migrated, mine) as url:
        engine = make_engine(url)
        try:
            told = list(play_damage(engine, mine / "journal", plan, spans, silent=silent))
        finally:
            engine.dispose()
    return plan, told


@contextmanager
def _books(migrated: str, folder: Path) -> Iterator[str]:
    """Empty books of this plan alone."""
    if migrated.startswith("sqlite"):
        shutil.copyfile(migrated.removeprefix("sqlite:///"), folder / "ledger.db")
        yield sqlite_url(folder / "ledger.db")
        return
    server, _, template = migrated.rpartition("/")
    name = folder.name.replace("-", "_").lower()
    admin = make_engine(f"{server}/postgres").execution_options(isolation_level="AUTOCOMMIT")
    try:
        with admin.connect() as connection:
            connection.exec_driver_sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        yield f"{server}/{name}"
        with admin.connect() as connection:
            connection.exec_driver_sql(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        admin.dispose()


@contextmanager
def _folder(within: Path | None = None) -> Iterator[Path]:
    """On a disk that costs nothing: each journal is flushed several times."""
    place = within or (FAST_DISK if FAST_DISK.is_dir() else None)
    made = Path(tempfile.mkdtemp(prefix="breakeven-damage-", dir=place))
    try:
        yield made
    finally:
        shutil.rmtree(made)


SCENES = (
    Scene(
        "DAMAGE", "section 9", "every bit, block and byte of journals damaged", play,
        "a reader that skips what is damaged and says nothing",
    ),
)  # fmt: skip
