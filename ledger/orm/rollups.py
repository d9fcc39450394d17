"""Sums of attempts by hour and day, by the dimensions of pages; written by `rollups`.

The dimensions are rows of small tables (`rollup_cells`, `rollup_comparisons`, `rollup_loads`). Sums
refer to them by number, so that a month is read quickly. An attempt counts once it has settled and
its number is at most `seq` of `RollupPositionRow`. Attempts up to that number that are open or lost
wait in `rollup_waiting`. Money is two limbs of 10^12, each summed. Coarser sums (quarters of a day,
weeks, days of minutes) are of past days: see `packing`.
"""

from sqlalchemy import BigInteger, LargeBinary

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Serial


class RollupPositionRow(LedgerBase):
    """The position of the sums, in a single row. `version` changes with every commit."""

    __tablename__ = "rollup_position"

    name: Stored[str] = define_column(primary_key=True)
    seq: Stored[int] = define_column(BigInteger)
    version: Stored[int] = define_column(BigInteger)


class RollupWaitingRow(LedgerBase):
    """An attempt that is not in the sums yet: open, or lost without evidence."""

    __tablename__ = "rollup_waiting"

    attempt_seq: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    opened_us: Stored[int] = define_column(BigInteger, index=True)


class RollupCellRow(LedgerBase):
    """The dimensions of a cell of attempts. `key` is all of them as text; some are null."""

    __tablename__ = "rollup_cells"

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    key: Stored[str] = define_column(unique=True)
    team_id: Stored[str]
    model: Stored[str]
    backend: Stored[str]
    target: Stored[str]
    pool: Stored[str | None]
    spill_reason: Stored[str | None]
    status: Stored[str | None]
    slo_met: Stored[bool | None]
    simulated: Stored[bool]
    kind: Stored[str]
    flag: Stored[str | None]


class _Sums:
    start_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    cell_id: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    attempts: Stored[int] = define_column(BigInteger)
    input_tokens: Stored[int] = define_column(BigInteger)
    cached_tokens: Stored[int] = define_column(BigInteger)
    output_tokens: Stored[int] = define_column(BigInteger)
    engine_us: Stored[int] = define_column(BigInteger)
    cost_high: Stored[int] = define_column(BigInteger)
    cost_low: Stored[int] = define_column(BigInteger)
    unpriced: Stored[int] = define_column(BigInteger)
    output_prompt: Stored[int] = define_column(BigInteger)  # sum of output x input tokens
    output_square: Stored[int] = define_column(BigInteger)


class RollupHourRow(_Sums, LedgerBase):
    __tablename__ = "rollup_hours"


class RollupDayRow(_Sums, LedgerBase):
    __tablename__ = "rollup_days"


class RollupQuarterRow(_Sums, LedgerBase):
    """Sums of six hours, from midnight UTC on."""

    __tablename__ = "rollup_quarters"


class RollupWeekRow(_Sums, LedgerBase):
    """Sums of seven days, aligned to the epoch."""

    __tablename__ = "rollup_weeks"


class RollupComparisonRow(LedgerBase):
    """The dimensions of a cell of compared attempts, with the comparator."""

    __tablename__ = "rollup_comparisons"

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    key: Stored[str] = define_column(unique=True)
    team_id: Stored[str]
    model: Stored[str]
    backend: Stored[str]
    pool: Stored[str | None]
    spill_reason: Stored[str | None]
    status: Stored[str | None]
    slo_met: Stored[bool | None]
    kind: Stored[str]
    position: Stored[int]
    comparator: Stored[str]


class _ComparedSums:
    start_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    cell_id: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    tokens: Stored[int] = define_column(BigInteger)
    output_tokens: Stored[int] = define_column(BigInteger)
    scaled: Stored[int] = define_column(BigInteger)
    cost_high: Stored[int] = define_column(BigInteger)
    cost_low: Stored[int] = define_column(BigInteger)


class RollupComparedHourRow(_ComparedSums, LedgerBase):
    __tablename__ = "rollup_compared_hours"


class RollupComparedDayRow(_ComparedSums, LedgerBase):
    __tablename__ = "rollup_compared_days"


class RollupComparedQuarterRow(_ComparedSums, LedgerBase):
    __tablename__ = "rollup_compared_quarters"


class RollupComparedWeekRow(_ComparedSums, LedgerBase):
    __tablename__ = "rollup_compared_weeks"


class RollupLoadRow(LedgerBase):
    """The series of a load: answered by `pool`, or spilled from `model` for lack of capacity."""

    __tablename__ = "rollup_loads"

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    key: Stored[str] = define_column(unique=True)
    team_id: Stored[str | None]  # null: all teams
    pool: Stored[str | None]
    model: Stored[str | None]
    kind: Stored[str]


class RollupLoadHourRow(LedgerBase):
    """An hour of a load by minute: see `rollup.pack`."""

    __tablename__ = "rollup_load_hours"

    cell_id: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    start_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    minutes: Stored[bytes] = define_column(LargeBinary)


class RollupLoadDayRow(LedgerBase):
    """A day of a load by minute, with a column for each figure: see `minutes.pack_day`."""

    __tablename__ = "rollup_load_days"

    cell_id: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    start_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    minutes: Stored[bytes] = define_column(LargeBinary)  # empty: every minute of the day
    tokens: Stored[bytes] = define_column(LargeBinary)
    output_tokens: Stored[bytes] = define_column(LargeBinary)
    good_tokens: Stored[bytes] = define_column(LargeBinary)
    good_output_tokens: Stored[bytes] = define_column(LargeBinary)
    requests: Stored[bytes] = define_column(LargeBinary)


class RollupPackingRow(LedgerBase):
    """The end of coarser sums, in a single row.

    They hold all days before `until_us`, as long as `version` equals the position's.
    """

    __tablename__ = "rollup_packing"

    name: Stored[str] = define_column(primary_key=True)
    version: Stored[int] = define_column(BigInteger)
    until_us: Stored[int] = define_column(BigInteger)
    calm: Stored[int]  # consecutive commits of the sums that left these unchanged


class RollupTagRow(LedgerBase):
    """A team's attempts with equal tags, or none. `tags` is their column as text."""

    __tablename__ = "rollup_tags"

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    key: Stored[str] = define_column(unique=True)
    team_id: Stored[str]
    tags: Stored[str]


class _TagSums:
    start_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    cell_id: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    attempts: Stored[int] = define_column(BigInteger)
    input_tokens: Stored[int] = define_column(BigInteger)
    output_tokens: Stored[int] = define_column(BigInteger)
    cost_high: Stored[int] = define_column(BigInteger)
    cost_low: Stored[int] = define_column(BigInteger)


class RollupTagHourRow(_TagSums, LedgerBase):
    __tablename__ = "rollup_tag_hours"


class RollupTagDayRow(_TagSums, LedgerBase):
    __tablename__ = "rollup_tag_days"


class RollupKeyRow(LedgerBase):
    """A team's attempts by one of its keys, on own engines or at APIs."""

    __tablename__ = "rollup_keys"

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    key: Stored[str] = define_column(unique=True)
    team_id: Stored[str]
    key_id: Stored[str]
    backend: Stored[str]


class _KeySums(_TagSums):
    unpriced: Stored[int] = define_column(BigInteger)


class RollupKeyHourRow(_KeySums, LedgerBase):
    __tablename__ = "rollup_key_hours"


class RollupKeyDayRow(_KeySums, LedgerBase):
    __tablename__ = "rollup_key_days"


class RollupTaggingRow(LedgerBase):
    """The start of sums by tag and key, valid as long as `version` equals the position's.

    They include attempts numbered above `since_seq` that the other sums include. No attempt up to
    that number is of `from_us` or later.
    """

    __tablename__ = "rollup_tagging"

    name: Stored[str] = define_column(primary_key=True)
    version: Stored[int] = define_column(BigInteger)
    since_seq: Stored[int] = define_column(BigInteger)
    from_us: Stored[int] = define_column(BigInteger)
