"""Definitions of sums of attempts, for both the stored sums and the rows behind them.

A `RollupCube` names the dimensions and measures of a set of sums. `pack` and `unpack` store an
hour's load by minute in one value, whose bytes do not depend on the order of additions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import add
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    String,
    and_,
    case,
    cast,
    func,
    literal,
    select,
)

from ledger.fleet.overflow import LACK_OF_CAPACITY
from ledger.orm.tables import (
    AttemptRow,
    ComparedCostRow,
    RollupCellRow,
    RollupComparedDayRow,
    RollupComparedHourRow,
    RollupComparedQuarterRow,
    RollupComparedWeekRow,
    RollupComparisonRow,
    RollupDayRow,
    RollupHourRow,
    RollupKeyDayRow,
    RollupKeyHourRow,
    RollupKeyRow,
    RollupLoadDayRow,
    RollupLoadHourRow,
    RollupLoadRow,
    RollupQuarterRow,
    RollupTagDayRow,
    RollupTagHourRow,
    RollupTagRow,
    RollupWeekRow,
    token_column,
)
from ledger.spans import DAY_US, HOUR_US, INPUT_TOKENS, MINUTE_US, OUTPUT_TOKENS, total

QUARTER_US, WEEK_US = DAY_US // 4, 7 * DAY_US
LIMB = 10**12
# A request of 2M prompt tokens and 460k output tokens. Ten million of them stay below 2**63; only
# an attempt beyond every known context counts for less than its product.
MOST_PRODUCT = (2**63 - 1) // 10**7
CANCELLED = "client_gone"
ANSWERED = ("finished", CANCELLED)  # a client got tokens
MINUTES = 60
Load = tuple[int, int, int, int, int]
"""Tokens and output tokens asked; of these inside the SLO, or where none was promised; requests."""


def limbs(column: Any) -> dict[str, ColumnElement[int]]:
    """Return a money column as two sums, high and low part, which are exact in any order."""
    return {"cost_high": total(column.op("/")(LIMB)), "cost_low": total(column.op("%")(LIMB))}


def hour_of(column: Any = AttemptRow.opened_us, width_us: int = HOUR_US) -> ColumnElement[int]:
    found: ColumnElement[int] = column - column % width_us
    return found


@dataclass(frozen=True, eq=False)
class RollupCube:
    """Dimensions and measures of a set of sums. `cells` is the table of dimension values.

    The next four are the tables of sums; `quarters` and `weeks` are `None` where there are too few
    rows to need them.
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
        """Return tables of past days' sums with their widths in microseconds (`packing`)."""
        every = ((self.quarters, QUARTER_US), (self.weeks, WEEK_US))
        return tuple((table, width_us) for table, width_us in every if table is not None)

    def tier(self, width_us: int) -> Any:
        return next(table for table, width in self.tiers + self.packed if width == width_us)

    def of_rows(self, width_us: int) -> Select[Any]:
        """Return a statement of sums by start and dimension; callers add conditions."""
        start = hour_of(width_us=width_us).label("start_us")
        named = [dimension.label(f"by_{name}") for name, dimension in self.dimensions.items()]
        measures = [measure.label(name) for name, measure in self.measures.items()]
        statement = select(start, *named, *measures)
        return self.join_compared(
            statement.group_by("start_us", *(widget.name for widget in named))
        )

    def join_compared(self, statement: Select[Any]) -> Select[Any]:
        if not self.compared:
            return statement
        return statement.join(ComparedCostRow, ComparedCostRow.attempt_id == AttemptRow.attempt_id)


_output, _input = cast(OUTPUT_TOKENS, BigInteger), cast(INPUT_TOKENS, BigInteger)


def _product(first: ColumnElement[int], second: ColumnElement[int]) -> ColumnElement[int]:
    """Return a product of tokens, at most `MOST_PRODUCT`, so that no sum passes 64 bits."""
    most = literal(MOST_PRODUCT, BigInteger)
    return case((first > most.op("/")(func.nullif(second, 0)), most), else_=first * second)


_settled_unpriced = and_(AttemptRow.settled_us.is_not(None), AttemptRow.cost_pusd.is_(None))

ATTEMPTS = RollupCube(
    RollupCellRow,
    RollupHourRow,
    RollupDayRow,
    RollupQuarterRow,
    RollupWeekRow,
    {
        name: getattr(AttemptRow, name)
        for name in RollupCellRow.__table__.columns.keys()  # noqa: SIM118  (not a dict)
        if name not in {"id", "key"}
    },
    {
        "attempts": func.count(),
        "input_tokens": total(INPUT_TOKENS),
        "cached_tokens": total(token_column("cached")),
        "output_tokens": total(OUTPUT_TOKENS),
        "engine_us": total(AttemptRow.engine_us),
        **limbs(AttemptRow.cost_pusd),
        "unpriced": total(case((_settled_unpriced, 1), else_=0)),
        "output_prompt": total(_product(_output, _input)),
        "output_square": total(_product(_output, _output)),
    },
)
COMPARED = RollupCube(
    RollupComparisonRow,
    RollupComparedHourRow,
    RollupComparedDayRow,
    RollupComparedQuarterRow,
    RollupComparedWeekRow,
    {
        name: getattr(ComparedCostRow if name in {"position", "comparator"} else AttemptRow, name)
        for name in RollupComparisonRow.__table__.columns.keys()  # noqa: SIM118  (not a dict)
        if name not in {"id", "key"}
    },
    {
        "tokens": total(INPUT_TOKENS + OUTPUT_TOKENS),
        "output_tokens": total(OUTPUT_TOKENS),
        "scaled": total(case((ComparedCostRow.ratio_ppm != 1_000_000, 1), else_=0)),
        **limbs(ComparedCostRow.cost_pusd),
    },
    compared=True,
)
CUBES = (ATTEMPTS, COMPARED)
# Sums by team and tags, and by key. They are separate because they began later: see `tagsums`.
TAGGED = RollupCube(
    RollupTagRow,
    RollupTagHourRow,
    RollupTagDayRow,
    None,
    None,
    {"team_id": AttemptRow.team_id, "tags": func.coalesce(cast(AttemptRow.tags, String), "{}")},
    {
        "attempts": func.count(),
        "input_tokens": total(INPUT_TOKENS),
        "output_tokens": total(OUTPUT_TOKENS),
        **limbs(AttemptRow.cost_pusd),
    },
)
KEYED = RollupCube(
    RollupKeyRow,
    RollupKeyHourRow,
    RollupKeyDayRow,
    None,
    None,
    {"team_id": AttemptRow.team_id, "key_id": AttemptRow.key_id, "backend": AttemptRow.backend},
    {**TAGGED.measures, "unpriced": ATTEMPTS.measures["unpriced"]},
)
LATER = (TAGGED, KEYED)
LOADS, LOAD_HOURS, LOAD_DAYS = RollupLoadRow, RollupLoadHourRow, RollupLoadDayRow

_lacked = and_(AttemptRow.backend == "api", AttemptRow.spill_reason.in_(sorted(LACK_OF_CAPACITY)))
_good = AttemptRow.slo_met.is_not(False)


def loads_of_rows() -> Select[Any]:
    """Return a statement of answers by minute, team, pool, spilled model and kind."""
    named = (
        hour_of(width_us=MINUTE_US).label("minute_us"),
        AttemptRow.team_id.label("by_team"),
        AttemptRow.pool.label("by_pool"),
        case((_lacked, AttemptRow.model), else_=None).label("by_model"),
        AttemptRow.kind.label("by_kind"),
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
        .where(AttemptRow.status.in_(ANSWERED), AttemptRow.pool.is_not(None) | _lacked)
        .group_by(*(column.name for column in named))
    )


def pack(minutes: Mapping[int, Load]) -> bytes:
    """Pack loads by minute of the hour, without quiet minutes."""
    return msgspec.msgpack.encode([(minute, *minutes[minute]) for minute in sorted(minutes)])


def unpack(packed: bytes) -> Iterator[tuple[int, Load]]:
    for item, *load in msgspec.msgpack.decode(packed):
        yield item, tuple(load)


def unpack_columns(packed: bytes) -> list[tuple[int, ...]]:
    """Return packed sums as columns: the minutes, then each figure."""
    return list(zip(*msgspec.msgpack.decode(packed), strict=True))


def add_load(minutes: dict[int, Load], minute: int, load: Load) -> None:
    before = minutes.get(minute)
    minutes[minute] = load if before is None else tuple(map(add, before, load))


def final_condition() -> ColumnElement[bool]:
    """Return a condition on attempts that no record can change any more."""
    return and_(AttemptRow.settled_us.is_not(None), AttemptRow.status != "lost")
