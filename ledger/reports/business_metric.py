"""Unit costs: spend divided by a daily business metric, such as customers or orders.

A metric file has the columns `day,value` and, for lines of a part of the organisation, `team` or
`tag`. A tag is a request tag or a virtual tag, such as `product=support`. Only days with both a
metric and a known spend count; the other days are named. No I/O.
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
    """Faults of a metric file, one per line."""


@dataclass(frozen=True, slots=True)
class TagGroup:
    """All requests with one tag, written `NAME=VALUE`."""

    text: str


Group = str | TagGroup | None  # a team, a tag, or the whole house


@dataclass(frozen=True, slots=True)
class MetricDay:
    """A day's units of one group."""

    day: date
    value: Decimal
    group: Group = None


@dataclass(frozen=True, slots=True)
class MetricUnitCost:
    """Cost per unit over the days that count. `pusd_per_unit` is `None` if there is no unit."""

    group: Group
    units: Fraction
    pusd: int
    days: int
    skipped: tuple[date, ...]

    @property
    def pusd_per_unit(self) -> Fraction | None:
        return self.pusd / self.units if self.units else None


def parse_metric(data: bytes, name: str = "") -> list[MetricDay]:
    """Return the days of a metric file.

    Raises `MetricFileError` for invalid lines, or `CsvTableError` if the file is not a table.
    """
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
            faults.append(f"{at} `day`: `{line.cells.get('day')}` is not a day: write 2026-11-02")
        try:
            value = Decimal(line.cells.get("value", ""))
            if not is_count(value):
                faults.append(f"{at} `value` {COUNTED}")
        except InvalidOperation:
            faults.append(f"{at} `value`: `{line.cells.get('value')}` is not a number")
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
    """Return whether a value is a valid number of units, within the limits of size and digits.

    Trailing zeros count as decimals, because a value is stored as text with all its digits.
    """
    if not value.is_finite() or not 0 <= value <= MOST_UNITS:
        return False
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -DECIMALS


def group_of(team: str | None, tag: str | None) -> Group | MetricFileError:
    """Return the group of a line, or the error if team and tag are invalid."""
    if not f"{team or ''}{tag or ''}".isprintable():
        return MetricFileError("a team's or tag's name has characters that no page shows")
    if not tag:
        return team or None
    if team:
        return MetricFileError("a line is of a team or of a tag, not of both")
    name, equals, value = tag.partition("=")
    if not (name and equals and value):
        return MetricFileError(f"`{tag}` is not a tag: write NAME=VALUE, as `product=support`")
    return TagGroup(tag)


def label_of(group: Group, house: str) -> str:
    """Return a group's name, `house` for the whole organisation."""
    return group.text if isinstance(group, TagGroup) else group or house


def unit_costs(
    metric: Iterable[MetricDay], spent: Mapping[tuple[date, Group], int]
) -> list[MetricUnitCost]:
    """Return the unit cost of each group of the metric.

    `spent` holds the spend of whole days by day and group, under `None` that of the whole
    organisation.
    """
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
