"""Reads of virtual tags and business metrics, for viewers of all teams only."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.manual_entries import VIRTUAL_TAG, ManualEntry, standing_entries
from ledger.reporting_zone import reporting_zone
from ledger.reports.business_metric import MetricDay
from ledger.reports.stored_metrics import stored_metrics as read_metrics
from ledger.reports.virtual_tags import (
    TagRule,
    VirtualSpend,
    VirtualTag,
    parse_tag,
    rule_lines,
    virtual_spend,
    virtual_spend_by_day,
)
from ledger.reports.virtual_tags import virtual_tags as read_virtual_tags


@query(ViewerScope.HOUSE, entries=4, teams=False)
def tag_entries(connection: Connection, view: DashboardView) -> Mapping[str, ManualEntry]:
    """Return the current entries of virtual tags, by name."""
    found = standing_entries(connection, VIRTUAL_TAG, view.now_us)
    return {name: entry for name, entry in sorted(found.items()) if entry.says is not None}


@query(ViewerScope.HOUSE, entries=8)
def spend_of_tag(connection: Connection, view: DashboardView, name: str) -> list[VirtualSpend]:
    """Return the cost of each value of a virtual tag in the period, highest first."""
    entry = standing_entries(connection, VIRTUAL_TAG, view.now_us).get(name)
    if entry is None or entry.says is None:
        return []
    return virtual_spend(connection, view.scope, parse_tag(name, rule_lines(entry.says)))


@query(ViewerScope.HOUSE, entries=8)
def spend_of_groups(
    connection: Connection, view: DashboardView, groups: Sequence[str]
) -> dict[tuple[int, str], int]:
    """Return pico-USD by start of day and group; a group is `NAME=VALUE`.

    `NAME` is a virtual tag's, else a request tag's. All values of a name are read at once.
    """
    zone, known = reporting_zone(connection), read_virtual_tags(connection, view.now_us)
    values: dict[str, list[str]] = defaultdict(list)
    for group in groups:
        name, _, value = group.partition("=")
        values[name].append(value)
    found: dict[tuple[int, str], int] = {}
    for name, wanted in values.items():
        rules = tuple(TagRule(value, {f"tag:{name}": (value,)}) for value in wanted)
        tag = known.get(name) or VirtualTag(name, rules)
        days = virtual_spend_by_day(connection, view.scope, zone, tag)
        found |= {
            (start_us, f"{name}={value}"): pusd
            for (start_us, value), pusd in days.items()
            if value in wanted
        }
    return found


@query(ViewerScope.HOUSE, entries=4, teams=False)
def metrics(connection: Connection, view: DashboardView) -> dict[str, list[MetricDay]]:
    """Return the stored metrics by name."""
    return read_metrics(connection, view.now_us)
