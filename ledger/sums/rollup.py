"""How attempts add up, said once: for the sums that are kept, for the rows they are made of.

A `Cube` names what attempts are grouped by and what of them is added up. `pack` and `unpack` keep
an hour's load by minute in one value: bytes that are the same whichever way the sums came about.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import add
from typing import Any

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Select, String, and_, case, cast, func, select

from ledger.fleet.overflow import LACK_OF_CAPACITY
from ledger.orm.tables import (
    Attempt,
    ComparedCost,
    RollupCell,
    RollupComparedDay,
    RollupComparedHour,
    RollupComparedQuarter,
    RollupComparedWeek,
    RollupComparison,
    RollupDay,
    RollupHour,
    RollupKey,
    RollupKeyDay,
    RollupKeyHour,
    RollupLoad,
    RollupLoadDay,
    RollupLoadHour,
    RollupQuarter,
    RollupTag,
    RollupTagDay,
    RollupTagHour,
    RollupWeek,
)
from ledger.spans import DAY_US, HOUR_US, INPUT_TOKENS, MINUTE_US, OUTPUT_TOKENS, total

QUARTER_US, WEEK_US = DAY_US // 4, 7 * DAY_US
LIMB = 10**12
ANSWERED = ("finished", "client_gone")  # a client got tokens
MINUTES = 60
Load = tuple[int, int, int, int, int]
"""Tokens and output tokens asked; of these inside the SLO, or where none was promised; requests."""


def limbs(column: Any) -> dict[str, ColumnElement[int]]:
    """Money of rows as two sums that no order of adding up changes."""
    return {"cost_high": total(column.op("/")(LIMB)), "cost_low": total(column.op("%")(LIMB))}


def hour_of(column: Any = Attempt.opened_us, width_us: int = HOUR_US) -> ColumnElement[int]:
    found: ColumnElement[int] = column - column % width_us
    return found


@dataclass(frozen=True)
class Cube:
    """`cells` is the table of what is grouped by, the next four those of the sums.

    `quarters` and `weeks` are `None` where few rows make coarser ones not worth it.
    """

    cells: Any
    hours: Any
    days: Any
    quarters: Any
    weeks: Any
    dimensions: Mapping[str, Any]
    measures: Mapping[str, Any]
    compared: bool = False

    @property
    def tiers(self) -> tuple[tuple[Any, int], ...]:
        return ((self.hours, HOUR_US), (self.days, DAY_US))

    @property
    def packed(self) -> tuple[tuple[Any, int], ...]:
        """Of days that are over: see `packing`."""
        every = ((self.quarters, QUARTER_US), (self.weeks, WEEK_US))
        return tuple((table, width_us) for table, width_us in every if table is not None)

    def tier(self, width_us: int) -> Any:
        return next(table for table, width in self.tiers + self.packed if width == width_us)

    def of_rows(self, width_us: int) -> Select[Any]:
        """Sums of attempts by start and dimension; the caller says of which."""
        start = hour_of(width_us=width_us).label("start_us")
        named = [one.label(f"by_{name}") for name, one in self.dimensions.items()]
        measures = [one.label(name) for name, one in self.measures.items()]
        statement = select(start, *named, *measures)
        return self.joined(statement.group_by("start_us", *(one.name for one in named)))

    def joined(self, statement: Select[Any]) -> Select[Any]:
        if not self.compared:
            return statement
        return statement.join(ComparedCost, ComparedCost.attempt_id == Attempt.attempt_id)


_output, _input = cast(OUTPUT_TOKENS, BigInteger), cast(INPUT_TOKENS, BigInteger)
_settled_unpriced = and_(Attempt.settled_us.is_not(None), Attempt.cost_pusd.is_(None))

ATTEMPTS = Cube(
    RollupCell,
    RollupHour,
    RollupDay,
    RollupQuarter,
    RollupWeek,
    {
        name: getattr(Attempt, name)
        for name in RollupCell.__table__.columns.keys()  # noqa: SIM118  (not a dict)
        if name not in {"id", "key"}
    },
    {
        "attempts": func.count(),
        "input_tokens": total(INPUT_TOKENS),
        "cached_tokens": total(Attempt.cached_tokens),
        "output_tokens": total(OUTPUT_TOKENS),
        "engine_us": total(Attempt.engine_us),
        **limbs(Attempt.cost_pusd),
        "unpriced": total(case((_settled_unpriced, 1), else_=0)),
        "output_prompt": total(_output * _input),
        "output_square": total(_output * _output),
    },
)
COMPARED = Cube(
    RollupComparison,
    RollupComparedHour,
    RollupComparedDay,
    RollupComparedQuarter,
    RollupComparedWeek,
    {
        name: getattr(ComparedCost if name in {"position", "comparator"} else Attempt, name)
        for name in RollupComparison.__table__.columns.keys()  # noqa: SIM118  (not a dict)
        if name not in {"id", "key"}
    },
    {
        "tokens": total(INPUT_TOKENS + OUTPUT_TOKENS),
        "output_tokens": total(OUTPUT_TOKENS),
        "scaled": total(case((ComparedCost.ratio_ppm != 1_000_000, 1), else_=0)),
        **limbs(ComparedCost.cost_pusd),
    },
    compared=True,
)
CUBES = (ATTEMPTS, COMPARED)
# By team and tags, and by key; apart from them, for they are kept since later: see `tagsums`.
TAGGED = Cube(
    RollupTag,
    RollupTagHour,
    RollupTagDay,
    None,
    None,
    {"team_id": Attempt.team_id, "tags": func.coalesce(cast(Attempt.tags, String), "{}")},
    {
        "attempts": func.count(),
        "input_tokens": total(INPUT_TOKENS),
        "output_tokens": total(OUTPUT_TOKENS),
        **limbs(Attempt.cost_pusd),
    },
)
KEYED = Cube(
    RollupKey,
    RollupKeyHour,
    RollupKeyDay,
    None,
    None,
    {"team_id": Attempt.team_id, "key_id": Attempt.key_id, "backend": Attempt.backend},
    {**TAGGED.measures, "unpriced": ATTEMPTS.measures["unpriced"]},
)
LATER = (TAGGED, KEYED)
LOADS, LOAD_HOURS, LOAD_DAYS = RollupLoad, RollupLoadHour, RollupLoadDay

_lacked = and_(Attempt.backend == "api", Attempt.spill_reason.in_(sorted(LACK_OF_CAPACITY)))
_good = Attempt.slo_met.is_not(False)


def loads_of_rows() -> Select[Any]:
    """Answers by minute, team, pool, model that spilled, and kind."""
    named = (
        hour_of(width_us=MINUTE_US).label("minute_us"),
        Attempt.team_id.label("by_team"),
        Attempt.pool.label("by_pool"),
        case((_lacked, Attempt.model), else_=None).label("by_model"),
        Attempt.kind.label("by_kind"),
    )
    tokens = INPUT_TOKENS + OUTPUT_TOKENS
    return (
        select(
            *named,
            total(tokens),
            total(OUTPUT_TOKENS),
            total(case((_good, tokens), else_=0)),
            total(case((_good, OUTPUT_TOKENS), else_=0)),
            func.count(),
        )
        .where(Attempt.status.in_(ANSWERED), Attempt.pool.is_not(None) | _lacked)
        .group_by(*(one.name for one in named))
    )


def pack(minutes: Mapping[int, Load]) -> bytes:
    """By minute of the hour; the quiet ones are left out."""
    return msgspec.msgpack.encode([(one, *minutes[one]) for one in sorted(minutes)])


def unpack(packed: bytes) -> Iterator[tuple[int, Load]]:
    for one, *load in msgspec.msgpack.decode(packed):
        yield one, tuple(load)


def unpacked(packed: bytes) -> list[tuple[int, ...]]:
    """The same in columns: the minutes, and each figure of theirs."""
    return list(zip(*msgspec.msgpack.decode(packed), strict=True))


def plus(minutes: dict[int, Load], minute: int, load: Load) -> None:
    before = minutes.get(minute)
    minutes[minute] = load if before is None else tuple(map(add, before, load))


def final() -> ColumnElement[bool]:
    """Attempts that no record changes any more."""
    return and_(Attempt.settled_us.is_not(None), Attempt.status != "lost")
