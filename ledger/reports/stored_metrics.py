"""Stored business metrics, sent or uploaded by name: one manual entry per day and group.

A later entry of a day and group replaces an earlier one; an entry without a value withdraws it.
Values are decimal text.
"""

from datetime import date
from decimal import Decimal

from sqlalchemy import Connection

from ledger.manual_entries import METRIC, standing_entries
from ledger.reports.business_metric import Group, MetricDay, TagGroup


def subject_of(name: str, day: date, group: Group) -> str:
    """Return the entry's subject, which is unique for name, day and group."""
    if isinstance(group, TagGroup):
        return f"{METRIC}{name}/{day}/tag:{group.text}"
    return f"{METRIC}{name}/{day}/" + ("" if group is None else f"team:{group}")


def stored_metrics(connection: Connection, at_us: int) -> dict[str, list[MetricDay]]:
    """Return the active metrics by name, each by day and group."""
    found: dict[str, list[MetricDay]] = {}
    for subject, entry in sorted(standing_entries(connection, METRIC, at_us).items()):
        if entry.says is None:
            continue
        name, day, whose = subject.split("/", 2)
        kind, _, text = whose.partition(":")
        group: Group = None if not kind else TagGroup(text) if kind == "tag" else text
        line = MetricDay(date.fromisoformat(day), Decimal(entry.says["value"]), group)
        found.setdefault(name, []).append(line)
    return found
