"""Divides what was spent by customers, tickets or orders: a metric of the business by day.

A file has `day,value` and, where a line is of one team, `team`. Only days of which both are known
are divided; the others are named. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from ledger.csvtable import read_table

COLUMNS = ("day", "value")


class MetricFileError(ValueError):
    """Faults of a file of a metric, a line each."""


@dataclass(frozen=True, slots=True)
class MetricDay:
    """`team` is None for the whole house."""

    day: date
    value: Decimal
    team: str | None = None


@dataclass(frozen=True, slots=True)
class MetricUnitCost:
    """Cost per unit over the days that count. `pusd_per_unit` is None without any unit."""

    team: str | None
    units: Fraction
    pusd: int
    days: int
    skipped: tuple[date, ...]

    @property
    def pusd_per_unit(self) -> Fraction | None:
        return self.pusd / self.units if self.units else None


def parse_metric(data: bytes, name: str = "") -> list[MetricDay]:
    """Return the days of a file. Raises `MetricFileError`, or `CsvTableError` for no table."""
    faults: list[str] = []
    table = read_table(data, name, faults)
    prefix = f"{name}: " if name else ""
    missing = [column for column in COLUMNS if column not in table.columns]
    faults += [
        f"{prefix}line {table.header}: the column `{column}` is missing" for column in missing
    ]
    found: dict[tuple[date, str | None], MetricDay] = {}
    for line in table.lines if not missing else ():
        at = f"{prefix}line {line.number}, column"
        day = value = None
        try:
            day = date.fromisoformat(line.cells.get("day", ""))
        except ValueError:
            faults.append(f"{at} `day`: `{line.cells.get('day')}` is no day: write 2026-11-02")
        try:
            value = Decimal(line.cells.get("value", ""))
            if not value.is_finite() or value < 0:
                faults.append(f"{at} `value`: is a number from 0 on")
        except InvalidOperation:
            faults.append(f"{at} `value`: `{line.cells.get('value')}` is no number")
        team = line.cells.get("team") or None
        if day is not None and value is not None:
            if (day, team) in found:
                faults.append(f"{at} `day`: {day} stands there twice")
            found[day, team] = MetricDay(day, value, team)
    if not found and not faults:
        faults.append(f"{prefix}the file has no day")
    if faults:
        raise MetricFileError("\n".join(faults))
    return list(found.values())


def unit_costs(
    metric: Iterable[MetricDay], spent: Mapping[tuple[date, str | None], int]
) -> list[MetricUnitCost]:
    """Divide; `spent` is by day and team, of the house under None, of whole days alone."""
    groups: dict[str | None, list[MetricDay]] = {}
    for item in metric:
        groups.setdefault(item.team, []).append(item)
    found = []
    for team, items in sorted(groups.items(), key=lambda pair: pair[0] or ""):
        known = [item for item in items if (item.day, team) in spent]
        found.append(
            MetricUnitCost(
                team,
                sum((Fraction(item.value) for item in known), Fraction(0)),
                sum(spent[item.day, team] for item in known),
                len(known),
                tuple(sorted(item.day for item in items if (item.day, team) not in spent)),
            )
        )
    return found
