"""Muting of anomalies by series, such as `team/search` (a group of spend by a dimension).

A muted series is left out of the anomalies on pages and in reports; all sums include its spend.
"""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection

from ledger.manual_entries import MUTE, ManualEntry, entries, entries_in_force, latest_us
from ledger.reports.movements import Anomaly


def series_of(by: str, name: str) -> str:
    return f"{by}/{name}"


def muted_series(connection: Connection, at_us: int) -> dict[str, ManualEntry]:
    """Return the muted series with their entries."""
    found = entries(connection, MUTE)
    standing = entries_in_force(found, latest_us(found, at_us))
    return {name: entry for name, entry in standing.items() if entry.says is not None}


def heard(found: Iterable[Anomaly], by: str, muted: Collection[str]) -> list[Anomaly]:
    """Return the anomalies of series that are not muted."""
    return [anomaly for anomaly in found if series_of(by, anomaly.name) not in muted]
