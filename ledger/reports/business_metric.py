"""Divides what was spent by customers, tickets or orders: a metric of the business by day.

A file has `day,value` and, where a line is of a part of the house, `team` or `tag`: a request's tag
or a virtual one, as `product=support`. Only days of which both are known are divided; the others
are named. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from ledger.csvtable import read_table

COLUMNS = ("day", "value")
MOST_UNITS, DECIMALS = 10**15, 9
COUNTED = f"must be a number from 0 on, at most {MOST_UNITS:,}, with at most {DECIMALS} decimals"


class MetricFileError(ValueError):
    """Faults of a file of a metric, a line each."""


@dataclass(frozen=True, slots=True)
class TagGroup:
    """All requests with one tag, written `NAME=VALUE`."""

    text: str


Group = str | TagGroup | None  # a team, a tag, or the whole house


@dataclass(frozen=True, slots=True)
class MetricDay:
    """A day's units of a group."""

    day: date
    value: Decimal
    group: Group = None


@dataclass(frozen=True, slots=True)
class MetricUnitCost:
    """Cost per unit over the days that count. `pusd_per_unit` is None without any unit."""

    group: Group
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
    found: dict[tuple[date, Group], MetricDay] = {}
    for line in table.lines if not missing else ():
        at = f"{prefix}line {line.number}, column"
        day = value = None
        try:
            day = date.fromisoformat(line.cells.get("day", ""))
        except ValueError:
            faults.append(f"{at} `day`: `{line.cells.get('day')}` is no day: write 2026-11-02")
        try:
            value = Decimal(line.cells.get("value", ""))
            if not is_count(value):
                faults.append(f"{at} `value` {COUNTED}")
        except InvalidOperation:
            faults.append(f"{at} `value`: `{line.cells.get('value')}` is no number")
        group = group_of(line.cells.get("team"), line.cells.get("tag"))
        if isinstance(group, MetricFileError):
            faults.append(f"{at} `tag`: {group}")
        elif day is not None and value is not None:
            if (day, group) in found:
                faults.append(f"{at} `day`: {day} stands there twice")
            found[day, group] = MetricDay(day, value, group)
    if not found and not faults:
        faults.append(f"{prefix}the file has no day")
    if faults:
        raise MetricFileError("\n".join(faults))
    return list(found.values())


def is_count(value: Decimal) -> bool:
    """Return whether a day can have so many units; more digits than these are nobody's count.

    Zeros behind the last decimal count, too: a value is stored as text, which has all of them.
    """
    if not value.is_finite() or not 0 <= value <= MOST_UNITS:
        return False
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -DECIMALS


def group_of(team: str | None, tag: str | None) -> Group | MetricFileError:
    """Return whose a line is, or what is wrong with what it says."""
    if not f"{team or ''}{tag or ''}".isprintable():
        return MetricFileError("a team's or tag's name has characters that no page shows")
    if not tag:
        return team or None
    if team:
        return MetricFileError("a line is of a team or of a tag, not of both")
    name, equals, value = tag.partition("=")
    if not (name and equals and value):
        return MetricFileError(f"`{tag}` is no tag: write NAME=VALUE, as `product=support`")
    return TagGroup(tag)


def label_of(group: Group, house: str) -> str:
    """Return a group's name; `house`: of the whole house."""
    return group.text if isinstance(group, TagGroup) else group or house


def unit_costs(
    metric: Iterable[MetricDay], spent: Mapping[tuple[date, Group], int]
) -> list[MetricUnitCost]:
    """Divide; `spent` is by day and group, of the house under None, of whole days alone."""
    groups: dict[Group, list[MetricDay]] = {}
    for item in metric:
        groups.setdefault(item.group, []).append(item)
    found = []
    for group, items in sorted(groups.items(), key=lambda pair: label_of(pair[0], "")):
        known = [item for item in items if (item.day, group) in spent]
        found.append(
            MetricUnitCost(
                group,
                sum((Fraction(item.value) for item in known), Fraction(0)),
                sum(spent[item.day, group] for item in known),
                len(known),
                tuple(sorted(item.day for item in items if (item.day, group) not in spent)),
            )
        )
    return found
