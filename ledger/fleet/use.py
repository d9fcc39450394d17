"""The use of a pool's engines in a span: by team, with down time and running time.

Closing hours and the running hour both use this module, so that both are split with the same
evidence. Use is the measured engine time of attempts settled in the piece. A sample stands for the
time since its engine's previous sample. Unobserved time is neither used nor down: it is idle.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection, literal_column, select

from ledger.orm.books import AttemptRow
from ledger.orm.fleet import HOUR_US, EngineSampleRow
from ledger.orm.seals import RetiredUseRow
from ledger.orm.types import exact_sum

# A sample stands for the time since its engine's previous one, at most this long.
SAMPLE_REACH_US = 900_000_000
DOWN = frozenset({"loading", "draining", "down"})
OFF = "off"  # stopped on purpose: an on-demand machine is returned, a reserved one is idle
_NOTHING = (0, 0, "")


@dataclass(slots=True)
class PoolUse:
    """The use in one piece of time. `up` are spans in which the pool's machines ran."""

    busy_us: dict[str, int] = field(default_factory=dict)
    charged_pusd: dict[str, int] = field(default_factory=dict)
    down_us: int = 0
    off_us: int = 0
    up: list[tuple[int, int]] = field(default_factory=list)


def uses(
    connection: Connection, pool: str, start_us: int, until_us: int, *, width_us: int = HOUR_US
) -> dict[int, PoolUse]:
    """Return the use by start of each piece. Pieces are cut at multiples of `width_us`."""
    found: dict[int, PoolUse] = {}
    for start, team, engine_us, cost in _work(connection, pool, (start_us, until_us), width_us):
        use = found.setdefault(start, PoolUse())
        use.busy_us[team], use.charged_pusd[team] = engine_us, cost
    if width_us == HOUR_US:
        _add_retired(connection, pool, (start_us, until_us), found)
    for begin_us, end_us, health in _spans(connection, pool, start_us, until_us):
        for start, (first, last) in _cut(begin_us, end_us, width_us):
            use = found.setdefault(start, PoolUse())
            if health in DOWN:
                use.down_us += last - first
            if health == OFF:
                use.off_us += last - first
            elif health != "down":
                use.up.append((first, last))
    return found


def _work(
    connection: Connection, pool: str, span: tuple[int, int], width_us: int
) -> Iterator[tuple[int, str, int, int]]:
    number = AttemptRow.settled_us.op("/")(literal_column(str(width_us)))  # integer division
    query = (
        select(
            number,
            AttemptRow.team_id,
            exact_sum(AttemptRow.engine_us),
            exact_sum(AttemptRow.cost_pusd),
        )
        .where(
            AttemptRow.backend == "own",
            AttemptRow.pool == pool,
            AttemptRow.settled_us >= span[0],
            AttemptRow.settled_us < span[1],
            AttemptRow.status != "lost",  # its bound was not posted
        )
        .group_by(number, AttemptRow.team_id)
    )
    for which, team, engine_us, cost in connection.execute(query):
        yield int(which) * width_us, team, engine_us, cost


def _add_retired(
    connection: Connection, pool: str, span: tuple[int, int], found: dict[int, PoolUse]
) -> None:
    """Add the use of retired attempts, which late corrections of an hour need."""
    query = select(
        RetiredUseRow.hour_us,
        RetiredUseRow.team_id,
        RetiredUseRow.engine_us,
        RetiredUseRow.charged_pusd,
    ).where(
        RetiredUseRow.pool == pool,
        RetiredUseRow.hour_us >= span[0],
        RetiredUseRow.hour_us < span[1],
    )
    for hour_us, team, engine_us, cost in connection.execute(query).all():
        use = found.setdefault(hour_us, PoolUse())
        use.busy_us[team] = use.busy_us.get(team, 0) + engine_us
        use.charged_pusd[team] = use.charged_pusd.get(team, 0) + cost


def _spans(
    connection: Connection, pool: str, start_us: int, until_us: int
) -> Iterator[tuple[int, int, str]]:
    """Yield the span of each sample: since its engine's previous sample, within the maximum.

    An engine whose first sample shows it loading was down before.
    """
    query = (
        select(EngineSampleRow.engine, EngineSampleRow.at_us, EngineSampleRow.health)
        .where(
            EngineSampleRow.pool == pool,
            EngineSampleRow.at_us >= start_us - SAMPLE_REACH_US,
            EngineSampleRow.at_us < until_us + SAMPLE_REACH_US,
        )
        .order_by(EngineSampleRow.engine, EngineSampleRow.at_us)
    )
    last, last_us = "", 0
    held = _NOTHING  # equal samples are merged: samples are many, changes few
    for engine, at_us, health in connection.execute(query).all():
        known = last == engine
        if known or health == "loading":
            begin_us = max(last_us if known else 0, at_us - SAMPLE_REACH_US, start_us)
            end_us = min(until_us, at_us)
            if begin_us < end_us:
                seen = health if known else "down"
                if known and begin_us == held[1] and seen == held[2]:
                    held = (held[0], end_us, seen)
                else:
                    if held is not _NOTHING:
                        yield held
                    held = (begin_us, end_us, seen)
        last, last_us = engine, at_us
    if held is not _NOTHING:
        yield held


def _cut(begin_us: int, end_us: int, width_us: int) -> Iterator[tuple[int, tuple[int, int]]]:
    while begin_us < end_us:
        start = begin_us // width_us * width_us
        last = min(end_us, start + width_us)
        yield start, (begin_us, last)
        begin_us = last
