"""Operations of `breakeven metrics`: customers, tickets or orders by day, under a name."""

import re
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, CONTRACTS, EVERY_TEAM, USAGE
from gateway.control.admin.verb import (
    NoInput,
    Note,
    OperationContext,
    OperationRefused,
    list_document,
    verb,
)
from ledger.manual_entries import ManualEntry, enter
from ledger.reports.business_metric import (
    COUNTED,
    MetricDay,
    MetricFileError,
    TagGroup,
    group_of,
    is_count,
)
from ledger.reports.stored_metrics import stored_metrics, subject_of

MOST_LINES = 2_000
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=60, description="as `tickets`")]
_Group = Annotated[str, msgspec.Meta(max_length=200)]


class MetricLine(msgspec.Struct, forbid_unknown_fields=True):
    """Units of one day, for the organization, a team, or a tag `NAME=VALUE`."""

    day: date
    value: Decimal
    team: _Group | None = None
    tag: _Group | None = None


class EnterMetricInput(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    lines: Annotated[
        list[MetricLine], msgspec.Meta(description="`day`, `value`, and `team` or `tag`")
    ]
    note: Note | None = None


class WithdrawMetricInput(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    note: Note | None = None


@verb(
    "GET /business-metrics",
    USAGE + EVERY_TEAM,
    "metrics list",
    "Customers, tickets or orders by day, by the metric's name",
    NoInput,
)
def metrics_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        found = stored_metrics(connection, place.now_us)
    return list_document(
        [{"name": name, "lines": [_line(item) for item in items]} for name, items in found.items()]
    )


@verb(
    "POST /business-metrics",
    CONTRACTS + APPLY,
    "metrics import",
    "Enter a metric's values; a later value of a day and group replaces the earlier one",
    EnterMetricInput,
)
def metrics_enter(place: OperationContext, given: EnterMetricInput) -> dict[str, Any]:
    if not _NAME.fullmatch(given.name):
        raise OperationRefused("a metric's name is letters, digits and _.-", param="name")
    if not 0 < len(given.lines) <= MOST_LINES:
        raise OperationRefused(f"`lines`: 1 to {MOST_LINES} at once", param="lines")
    entered: dict[str, Decimal] = {}
    for number, line in enumerate(given.lines, 1):
        group = group_of(line.team, line.tag)
        if isinstance(group, MetricFileError):
            raise OperationRefused(f"`lines`: line {number}: {group}", param="lines")
        if not is_count(line.value):
            words = f"`lines`: line {number}: `value` {COUNTED}"
            raise OperationRefused(words, param="lines")
        subject = subject_of(given.name, line.day, group)
        if subject in entered:
            words = f"`lines`: line {number}: {line.day} stands there twice"
            raise OperationRefused(words, param="lines")
        entered[subject] = line.value
    with place.ledger.begin() as connection:
        for subject, value in entered.items():
            says = {"value": f"{value:f}"}
            enter(connection, _entry(place, subject, says, given.note))
    return {"name": given.name, "lines": len(entered)}


@verb(
    "POST /business-metrics/withdraw",
    CONTRACTS + APPLY,
    "metrics withdraw",
    "Take a metric back with all of its values",
    WithdrawMetricInput,
)
def metrics_withdraw(place: OperationContext, given: WithdrawMetricInput) -> dict[str, Any]:
    with place.ledger.begin() as connection:
        items = stored_metrics(connection, place.now_us).get(given.name, [])
        for item in items:
            subject = subject_of(given.name, item.day, item.group)
            enter(connection, _entry(place, subject, None, given.note))
    if not items:
        raise OperationRefused(f"there is no metric named `{given.name}`", param="name")
    return {"name": given.name, "lines": len(items)}


def _entry(
    place: OperationContext, subject: str, says: dict[str, Any] | None, note: str | None
) -> ManualEntry:
    return ManualEntry(0, subject, says, place.now_us, place.now_us, place.by, note)


def _line(item: MetricDay) -> dict[str, Any]:
    group = item.group
    tag = group.text if isinstance(group, TagGroup) else None
    return {
        "day": str(item.day),
        "value": f"{item.value:f}",
        "team": group if isinstance(group, str) else None,
        "tag": tag,
    }


VERBS = (metrics_list, metrics_enter, metrics_withdraw)
