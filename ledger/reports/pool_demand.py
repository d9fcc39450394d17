"""Demand of pools by time window and model, from which the verdict builds a value curve.

A pool's load by minute is exact, and so are purchases for lack of capacity by minute and model. The
sums know the models on own engines only by the hour, so a minute's tokens have the mix of its hour.
Requests of teams and keys that may not leave own engines are a separate class. The sums know a
key's tokens by hour, without the model, so these have the mix of the team's hour. If all keys of a
team must stay, all its traffic does. In mixed hours no token is counted twice or lost.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from sqlalchemy import Connection, select

from ledger.economics.value_curve import TrafficClass, TrafficWindow, ValueCurve
from ledger.fleet.model_routes import ModelRoute, read_routes
from ledger.orm.identity import KeyRow, TeamRow
from ledger.queries.load import PoolLoads
from ledger.queries.rollups import RollupProgress, SumQuery, Sums, sums_at
from ledger.queries.tags import own_tokens_of_keys
from ledger.spans import HOUR_US, MINUTE_US, Scope
from ledger.sums.rollup import ANSWERED, ATTEMPTS

KEPT_INSIDE = "internal_only"
MINUTES_PER_HOUR = 60  # engines even out bursts over an hour at most: `WINDOWS_MINUTES`
WORK_UNITS = 100  # of a token that takes the pool's mean of engine time


class ClassKey(NamedTuple):
    """Class of requests for one model; `is_bound` if they may not leave own engines."""

    model: str
    is_bound: bool


def class_name(key: ClassKey) -> str:
    """Return the display name of a class."""
    return f"{key.model} of teams and keys that stay inside" if key.is_bound else key.model


class _KeptIn(NamedTuple):
    pool: str
    kind: str
    key: ClassKey


@dataclass(frozen=True, slots=True)
class KeptMix:
    """Answers of own engines by pool, kind and class: tokens by hour, and engine time."""

    hours: dict[_KeptIn, dict[int, int]]
    engine_us: dict[_KeptIn, int]
    routes: Mapping[str, ModelRoute]

    def of(self, pool: str, kinds: Collection[str] | None) -> "PoolMix":
        """Return one pool's mix of these request kinds (`None`: all)."""
        hours: dict[ClassKey, dict[int, int]] = {}
        engine_us: dict[ClassKey, int] = {}
        for of, by_hour in self.hours.items():
            if of.pool != pool or (kinds is not None and of.kind not in kinds):
                continue
            into = hours.setdefault(of.key, {})
            for hour_us, tokens in by_hour.items():
                into[hour_us] = into.get(hour_us, 0) + tokens
            engine_us[of.key] = engine_us.get(of.key, 0) + self.engine_us[of]
        return PoolMix(hours, engine_us)


@dataclass(frozen=True, slots=True)
class PoolMix:
    """A pool's tokens by class and hour, and its engine time by class."""

    hours: Mapping[ClassKey, Mapping[int, int]]
    engine_us: Mapping[ClassKey, int]

    def work(self, keys: Iterable[ClassKey]) -> list[int]:
        """Return the engine time per token of each class, in hundredths of the pool's mean."""
        tokens = {key: sum(by_hour.values()) for key, by_hour in self.hours.items()}
        whole_us, whole = sum(self.engine_us.values()), sum(tokens.values())
        found = []
        for key in keys:
            count, us = tokens.get(key, 0), self.engine_us.get(key, 0)
            known = count and us and whole_us
            ratio = Fraction(us * whole, count * whole_us) if known else Fraction(1)
            found.append(max(1, round(ratio * WORK_UNITS)))
        return found


def read_mix(connection: Connection, scope: Scope, here: RollupProgress | None) -> KeptMix:
    """Read the answers of own engines by hour. Call this inside `read_consistently`."""
    bound = frozenset(
        connection.execute(select(TeamRow.id).where(TeamRow.residency == KEPT_INSIDE)).scalars()
    )
    tighter = select(KeyRow.id).where(
        KeyRow.residency == KEPT_INSIDE, KeyRow.team_id.not_in(sorted(bound))
    )
    keys = sorted(connection.execute(tighter).scalars())
    by_team = bool(bound or keys)
    ask = SumQuery(
        ("pool", "kind", "model", "status", *(("team_id",) if by_team else ())),
        HOUR_US,
        where=lambda of: [of.backend == "own"],
        measures=("input_tokens", "output_tokens", "engine_us"),
    )
    everyone = Scope(scope.start_us, scope.end_us)
    found = sums_at(connection, ATTEMPTS, everyone, ask, here)
    inside = own_tokens_of_keys(connection, everyone, keys, here) if keys else {}
    mix = KeptMix({}, {}, read_routes(connection))
    for of, hour_us, tokens, engine_us in split_by_residency(_answered(found), bound, inside):
        by_hour = mix.hours.setdefault(of, {})
        by_hour[hour_us] = by_hour.get(hour_us, 0) + tokens
        mix.engine_us[of] = mix.engine_us.get(of, 0) + engine_us
    return mix


class KeptCell(NamedTuple):
    """The work of own engines for one team, pool, kind and model in an hour."""

    hour_us: int
    team: str | None
    pool: str
    kind: str
    model: str
    tokens: int
    engine_us: int


def _answered(found: Sums) -> Iterator[KeptCell]:
    for (start_us, pool, kind, model, status, *team), (given, made, busy_us) in found.items():
        if status in ANSWERED and pool is not None:
            name = team[0] if team else None
            yield KeptCell(start_us, name, pool, kind, model, given + made, busy_us)


def split_by_residency(
    cells: Iterable[KeptCell], bound: Collection[str], inside: Mapping[tuple[int, str], int]
) -> Iterator[tuple[_KeptIn, int, int, int]]:
    """Yield (class, hour, tokens, engine time) of each cell, bound requests separately.

    `bound` are teams whose requests may not leave own engines. `inside` are tokens of bound keys by
    hour and team.
    """
    hours: dict[tuple[int, str | None], list[KeptCell]] = {}
    for cell in cells:
        hours.setdefault((cell.hour_us, cell.team), []).append(cell)
    for (hour_us, team), group in hours.items():
        whole = sum(cell.tokens for cell in group)
        stays = whole if team in bound else min(whole, inside.get((hour_us, team or ""), 0))
        before = 0
        for cell in sorted(group):
            # Differences of rounded running sums add up to `stays` for any shares.
            upto = before + cell.tokens
            part = (upto * stays // whole - before * stays // whole) if whole else 0
            before = upto
            part_us = cell.engine_us * part // cell.tokens if cell.tokens else 0
            for is_bound, tokens, busy_us in (
                (True, part, part_us),
                (False, cell.tokens - part, cell.engine_us - part_us),
            ):
                if tokens or busy_us:
                    of = _KeptIn(cell.pool, cell.kind, ClassKey(cell.model, is_bound))
                    yield of, hour_us, tokens, busy_us


@dataclass(frozen=True, slots=True)
class PoolTraffic:
    """One pool's load: tokens kept by minute, and tokens bought for lack of capacity by model."""

    start_us: int
    kept: list[int]
    bought: Mapping[str, list[int]]


def pool_traffic(
    loads: PoolLoads, pool: str, spills: Collection[str], kinds: Collection[str] | None
) -> PoolTraffic:
    """Return the load of a pool, split into tokens that it served and tokens bought elsewhere."""
    kept = [0] * loads.minutes
    bought: dict[str, list[int]] = {}
    for of, series in loads.series.items():
        if kinds is not None and of.kind not in kinds:
            continue
        if of.pool == pool:
            kept = [have + more for have, more in zip(kept, series.tokens, strict=True)]
        elif of.pool is None and of.model is not None and of.model in spills:
            before = bought.get(of.model)
            bought[of.model] = (
                [*series.tokens]
                if before is None
                else [have + more for have, more in zip(before, series.tokens, strict=True)]
            )
    return PoolTraffic(loads.start_us, kept, bought)


def class_keys(mix: PoolMix, traffic: PoolTraffic) -> list[ClassKey]:
    """Return the classes with any token, in a fixed order."""
    kept = {key for key, by_hour in mix.hours.items() if any(by_hour.values())}
    return sorted(kept | {ClassKey(model, False) for model in traffic.bought})


@dataclass(frozen=True, slots=True)
class PoolSize:
    """Number of engines of a pool, and tokens per minute of one inside the SLO, if known."""

    engines: int
    per_minute_each: Fraction | None
    window_minutes: int


def build_curve(
    traffic: PoolTraffic,
    mix: PoolMix,
    classes: list[tuple[ClassKey, TrafficClass]],
    *,
    size: PoolSize,
    bought_pusd: Mapping[str, int],
) -> ValueCurve:
    """Return the value curve of one pool; `bought_pusd` is the price paid by model."""
    keys = [key for key, _ in classes]
    kept = _kept_by_class(traffic, mix, keys)
    bought = [
        [0] * len(traffic.kept) if key.is_bound else traffic.bought.get(key.model, [])
        for key in keys
    ]
    minutes = len(traffic.kept)
    windows = _windows(kept, bought, minutes, size.window_minutes)
    hours = _windows(kept, [[0] * minutes for _ in keys], minutes, MINUTES_PER_HOUR)
    counted = [traffic_class for _, traffic_class in classes]
    return ValueCurve(
        tuple(counted),
        windows,
        size.engines,
        _capacity(counted, windows, size),
        tuple(0 if key.is_bound else bought_pusd.get(key.model, 0) for key in keys),
        tuple(hour.kept for hour in hours),
        max(1, MINUTES_PER_HOUR // size.window_minutes),
    )


def _kept_by_class(traffic: PoolTraffic, mix: PoolMix, keys: list[ClassKey]) -> list[list[int]]:
    """Return the kept tokens of every minute by class: whole tokens in the mix of the hour."""
    found = [[0] * len(traffic.kept) for _ in keys]
    if not keys:
        return found
    whole = [sum(mix.hours.get(key, {}).values()) for key in keys]
    place = 0
    while place < len(traffic.kept):
        at_us = traffic.start_us + place * MINUTE_US
        hour_us = at_us - at_us % HOUR_US
        until = min(len(traffic.kept), -(-(hour_us + HOUR_US - traffic.start_us) // MINUTE_US))
        if any(traffic.kept[place:until]):
            shares = [mix.hours.get(key, {}).get(hour_us, 0) for key in keys]
            _split_hour(found, traffic.kept, (place, until), shares if any(shares) else whole)
        place = until
    return found


def _split_hour(
    found: list[list[int]], kept: Sequence[int], span: tuple[int, int], shares: Sequence[int]
) -> None:
    """Split the minutes of one hour by shares; each class gets its exact part of the hour.

    Rounding each minute alone would shift the remainders to the largest class and its price.
    """
    share_sum = sum(shares)
    most = max(range(len(shares)), key=shares.__getitem__)
    minutes = [place for place in range(*span) if kept[place]]
    rest = {place: kept[place] for place in minutes}
    for index, share in enumerate(shares):
        if not share or index == most:
            continue
        missing = sum(kept[place] for place in minutes) * share // share_sum
        for place in minutes:
            part = min(kept[place] * share // share_sum, rest[place])
            found[index][place] = part
            rest[place] -= part
            missing -= part
        while missing:  # a token a minute: rounding lost less than that in each
            for place in minutes:
                if missing and rest[place]:
                    found[index][place] += 1
                    rest[place] -= 1
                    missing -= 1
    for place in minutes:
        found[most][place] = rest[place]


def _windows(
    kept: list[list[int]], bought: list[list[int]], minutes: int, width: int
) -> tuple[TrafficWindow, ...]:
    """Return the windows with any token; equal windows once, with their count."""
    counts: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    columns = [_summed(column, minutes, width) for column in (*kept, *bought)]
    half = len(kept)
    for row in zip(*columns, strict=True):
        if any(row):
            window = row[:half], row[half:]
            counts[window] = counts.get(window, 0) + 1
    return tuple(TrafficWindow(*window, times) for window, times in counts.items())


def _summed(column: list[int], minutes: int, width: int) -> list[int]:
    full = column or [0] * minutes
    if width == 1:
        return full
    return [sum(full[start : start + width]) for start in range(0, minutes, width)]


def _capacity(
    classes: list[TrafficClass],
    windows: tuple[TrafficWindow, ...],
    size: PoolSize,
) -> Fraction | None:
    """Return the work of one engine in a window: its tokens at the mean engine time."""
    if size.per_minute_each is None:
        return None
    tokens = work = 0
    for window in windows:
        for traffic, kept, bought in zip(classes, window.kept, window.bought, strict=True):
            count = (kept + bought) * window.times
            tokens += count
            work += count * traffic.work
    mean = Fraction(work, tokens) if tokens else Fraction(1)
    # Exact fractions of fitted rates have hundreds of digits; a millionth of a token suffices.
    return (size.per_minute_each * size.window_minutes * mean).limit_denominator(10**6)
