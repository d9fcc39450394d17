"""Traffic for the planner of engines: classes with price and engine time, and arrivals.

Prices elsewhere, engine time and capacity are those of the verdict over past days. Arrivals are
first attempts, counted as soon as they are in the ledger, also if an API served them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, func, select

from ledger.economics.assumptions import ModelResidency
from ledger.economics.cost import TokenBasis
from ledger.money import PPM, divide_half_even
from ledger.orm.books import AttemptRow
from ledger.orm.identity import TeamRow
from ledger.queries.rollups import RollupProgress, SumQuery, read_consistently, sums_at
from ledger.reports.pool_demand import KEPT_INSIDE, ClassKey, class_name
from ledger.reports.survey import survey
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.sums.rollup import ANSWERED, ATTEMPTS

MINUTE_US = 60_000_000
FIRST_ATTEMPT = 1
LONGEST_US = DAY_US  # an earlier request is not read, though it may still run
_STILL_RUNS_US = 2**62
_LEAVES = {ModelResidency.MAY_LEAVE, ModelResidency.DECLARED_MOVABLE}


@dataclass(frozen=True, slots=True)
class UsualTimes:
    """Mean request time by class, in microseconds, for requests opened from `from_us` on."""

    from_us: int
    by_class: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DemandedClass:
    """One class of a pool's requests: mean engine time and mean price elsewhere."""

    name: str
    engine_us: int
    pusd_per_request: int | None
    movable: bool


def demanded_classes(
    connection: Connection, pool: str, scope: Scope
) -> tuple[DemandedClass, ...] | None:
    """Return the classes of a pool in a span, `None` while an engine's capacity is unknown."""
    verdict = survey(connection, scope, bucket_us=HOUR_US, basis=TokenBasis.INPUT_OUTPUT).verdict
    if verdict is None or pool not in verdict.curves:
        return None
    curve = verdict.curves[pool]
    assumed = next(item for item in verdict.sheet.pools if item.pool == pool)
    if not curve.capacity:
        return None
    means = read_consistently(connection, partial(_mean_tokens, connection, scope))
    window_us = assumed.window_minutes * MINUTE_US
    found = []
    for model, traffic in zip(assumed.models, curve.classes, strict=True):
        tokens, requests = means.get(model.model, (0, 0))
        if not requests:
            continue
        price = traffic.pusd_per_token
        engine_us = tokens * traffic.work * window_us / (curve.capacity * requests)
        found.append(
            DemandedClass(
                model.model,
                max(1, round(engine_us)),
                None
                if price is None
                else divide_half_even(tokens * _whole(price)[0], requests * _whole(price)[1]),
                model.residency in _LEAVES,
            )
        )
    return tuple(sorted(found, key=lambda item: item.name))


def _whole(price: object) -> tuple[int, int]:
    """Return a price as numerator and denominator."""
    numerator, denominator = getattr(price, "numerator", 0), getattr(price, "denominator", 1)
    return int(numerator), int(denominator)


def _mean_tokens(
    connection: Connection, scope: Scope, here: RollupProgress | None
) -> dict[str, tuple[int, int]]:
    """Return tokens and number of answered requests by class, at any target."""
    bound = bound_teams(connection)
    ask = SumQuery(
        ("model", "status", "team_id"),
        measures=("attempts", "input_tokens", "output_tokens"),
    )
    found: dict[str, tuple[int, int]] = {}
    for (_, model, status, team), (count, given, made) in sums_at(
        connection, ATTEMPTS, scope, ask, here
    ).items():
        if status not in ANSWERED:
            continue
        name = class_name(ClassKey(model, team in bound))
        tokens, requests = found.get(name, (0, 0))
        found[name] = (tokens + given + made, requests + count)
    return found


def arrivals(
    connection: Connection, models: Collection[str], start_us: int, end_us: int
) -> dict[int, dict[str, int]]:
    """Return counts of first attempts for these models by minute of opening and by class.

    `start_us` is the start of a minute.
    """
    row, bound = AttemptRow, bound_teams(connection)
    minute = (row.opened_us - row.opened_us % MINUTE_US).label("minute_us")
    query = (
        select(minute, row.model, row.team_id, func.count())
        .where(
            row.model.in_(sorted(models)),
            row.opened_us >= start_us,
            row.opened_us < end_us,
            row.attempt_no == FIRST_ATTEMPT,
        )
        .group_by("minute_us", row.model, row.team_id)
    )
    found: dict[int, dict[str, int]] = {}
    for minute_us, model, team, count in connection.execute(query):
        name = class_name(ClassKey(model, team in bound))
        counts = found.setdefault(minute_us, {})
        counts[name] = counts.get(name, 0) + count
    return found


def running_ppm(
    connection: Connection,
    models: Collection[str],
    start_us: int,
    end_us: int,
    usual: Sequence[UsualTimes] | None = None,
) -> dict[int, dict[str, int]]:
    """Return how many first attempts ran in each minute, by class, in millionths of a request.

    A request counts in each minute by that minute's share of the time from opening to settlement,
    so its parts add up to 1,000,000. An unsettled request counts in the minute of its opening.
    Requests opened up to `LONGEST_US` before `start_us`, the start of a minute, are read.

    With `usual`, in time order, each minute has the value that was known at its end
    (`passing_ppm`), whenever it is read. A request keeps the usual time at its opening.
    """
    row, bound = AttemptRow, bound_teams(connection)
    live, usual = usual is not None, usual or ()
    longest_us = max((max(each.by_class.values(), default=0) for each in usual), default=0)
    reach_us = min(LONGEST_US, longest_us) if live else LONGEST_US
    settled_us = func.coalesce(row.settled_us, _STILL_RUNS_US if live else row.opened_us)
    first = (row.opened_us - row.opened_us % MINUTE_US).label("first_us")
    last = (settled_us - settled_us % MINUTE_US).label("last_us")
    mine = (
        row.model.in_(sorted(models)),
        row.opened_us >= start_us - reach_us,
        row.opened_us < end_us,
        row.attempt_no == FIRST_ATTEMPT,
    )
    found: dict[int, dict[str, int]] = {}

    def add(minute_us: int, name: str, ppm: int) -> None:
        if start_us <= minute_us < end_us and ppm:
            counts = found.setdefault(minute_us, {})
            counts[name] = counts.get(name, 0) + ppm

    # Most requests end in the minute in which they began: the database counts those.
    short = select(first, row.model, row.team_id, func.count()).where(*mine, last <= first)
    for minute_us, model, team, count in connection.execute(
        short.group_by("first_us", row.model, row.team_id)
    ):
        add(minute_us, class_name(ClassKey(model, team in bound)), count * PPM)
    long = select(row.opened_us, settled_us, row.model, row.team_id).where(*mine, last > first)
    for opened_us, ended_us, model, team in connection.execute(long):
        assert ended_us is not None, "it was coalesced"
        name = class_name(ClassKey(model, team in bound))
        parts = (
            passing_ppm(opened_us, ended_us, _usual_us(usual, opened_us, name))
            if live
            else spread_ppm(opened_us, ended_us)
        )
        for minute_us, ppm in parts:
            add(minute_us, name, ppm)
    return found


def _usual_us(usual: Sequence[UsualTimes], opened_us: int, name: str) -> int:
    """Return the usual time of a class when a request was opened, 0 if none was known."""
    known = [each for each in usual if each.from_us <= opened_us]
    return known[-1].by_class.get(name, 0) if known else 0


def usual_times(
    connection: Connection, models: Collection[str], start_us: int, end_us: int, known_us: int
) -> dict[str, int]:
    """Return the mean time of first attempts opened in a span, by class, in microseconds.

    An unsettled attempt counts as running until `known_us`.
    """
    row, bound = AttemptRow, bound_teams(connection)
    ran = func.sum(func.coalesce(row.settled_us, known_us) - row.opened_us)
    query = (
        select(row.model, row.team_id, func.count(), ran)
        .where(
            row.model.in_(sorted(models)),
            row.opened_us >= start_us,
            row.opened_us < end_us,
            row.attempt_no == FIRST_ATTEMPT,
        )
        .group_by(row.model, row.team_id)
    )
    sums: dict[str, tuple[int, int]] = {}
    for model, team, count, ran_us in connection.execute(query):
        assert ran_us is not None, "a group has rows"
        name = class_name(ClassKey(model, team in bound))
        requests, total_us = sums.get(name, (0, 0))
        sums[name] = (requests + count, total_us + int(ran_us))
    return {name: total_us // requests for name, (requests, total_us) in sums.items()}


def passing_ppm(opened_us: int, ended_us: int, usual_us: int) -> Iterator[tuple[int, int]]:
    """Yield each minute of a request and its share, as known at the end of that minute.

    The end of a running request is unknown, so it counts by minutes of its usual time until that
    has passed. The rest counts in the minute of its end. Parts per million add up exactly.
    """
    minute_us, before = opened_us - opened_us % MINUTE_US, 0
    while before < PPM:
        until_us, through = minute_us + MINUTE_US, PPM
        if until_us < min(ended_us, opened_us + usual_us):
            through = PPM * (until_us - opened_us) // usual_us
        yield minute_us, through - before
        minute_us, before = until_us, through


def spread_ppm(opened_us: int, ended_us: int) -> Iterator[tuple[int, int]]:
    """Yield each minute of a request and its share, in parts per million that add up exactly."""
    minute_us, before = opened_us - opened_us % MINUTE_US, 0
    while minute_us < ended_us:
        until_us = min(minute_us + MINUTE_US, ended_us)
        through = PPM * (until_us - opened_us) // (ended_us - opened_us)
        yield minute_us, through - before
        minute_us, before = minute_us + MINUTE_US, through


def first_arrival_us(connection: Connection, models: Collection[str]) -> int | None:
    """Return when the first request for any of these models was opened."""
    query = select(func.min(AttemptRow.opened_us)).where(AttemptRow.model.in_(sorted(models)))
    return connection.execute(query).scalar_one()


def bound_teams(connection: Connection) -> frozenset[str]:
    """Return the teams whose requests may not leave own engines."""
    query = select(TeamRow.id).where(TeamRow.residency == KEPT_INSIDE)
    return frozenset(connection.execute(query).scalars())
