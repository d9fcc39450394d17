"""Import of LiteLLM's spending by day, key, team, model and provider, next to the ledger.

A day is read in batches and stored in one transaction. A day whose number of requests is stored is
not read again: an interrupted import resumes, and a second import changes nothing. A day whose rows
were pruned is read from LiteLLM's daily sums; the two sources are never mixed.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine

from gateway.control.litellm.source_database import Row, SourceDatabase, SourceError
from ledger.database import reading
from ledger.spend_history import HistoryCell, HistorySums, pusd_of, replace_day, stored_days

TEXT_LIMIT: Final = 256
FAILED: Final = "failure"


class SpendDay(NamedTuple):
    """A UTC day of a source. `is_sums`: its daily sums have more requests than its rows."""

    day: str
    requests: int
    is_sums: bool


class SpendResult(NamedTuple):
    """Result of an import. `known` counts days that were stored before and did not change."""

    days: int
    known: int
    sums: HistorySums


class SourceNames(NamedTuple):
    """Map of LiteLLM's ids to the new ones. `key_id` returns a key's id by its digest."""

    teams: Mapping[str, str]
    organisations: Mapping[str, str]
    key_id: Callable[[str], str]


def spend_days(source: SourceDatabase, connection: Connection) -> list[SpendDay]:
    """Return the days with spending in a source, oldest first. Raises `SourceError`."""
    rows, sums = dict(source.spend_days(connection)), source.daily_days(connection)
    for day in sums:
        try:
            is_day = datetime.fromisoformat(day).date().isoformat() == day
        except ValueError:
            is_day = False
        if not is_day:
            raise SourceError(f"daily spend: `{day}` is not a date such as 2026-11-01: correct it")
    return [
        SpendDay(day, max(rows.get(day, 0), sums.get(day, 0)), sums.get(day, 0) > rows.get(day, 0))
        for day in sorted(rows.keys() | sums.keys())
    ]


def import_spend(
    source: SourceDatabase, ledger: Engine, names: SourceNames, told: Callable[[str], None]
) -> SpendResult:
    """Store each missing day. `told` is called with each day after it is stored."""
    with source.reading() as connection:
        days = spend_days(source, connection)
    with reading(ledger) as connection:
        before = stored_days(connection, source.name)
    known, total = 0, HistorySums()
    for day, requests, is_sums in days:
        if before.get(day, 0) >= requests:  # fewer: rows were pruned since
            known += 1
            continue
        cells = (_sums_of if is_sums else _cells_of)(source, day, names)
        with ledger.begin() as connection:
            replace_day(connection, source.name, day, cells)
        for sums in cells.values():
            total = total.plus(sums)
        told(day)
    return SpendResult(len(days) - known, known, total)


def _cells_of(
    source: SourceDatabase, day: str, names: SourceNames
) -> dict[HistoryCell, HistorySums]:
    start = datetime.fromisoformat(day)  # as LiteLLM has it: UTC, and no zone
    cells: dict[HistoryCell, HistorySums] = {}
    ids: dict[str, str] = {}
    with source.reading() as connection:
        for row in source.spend_of(connection, start, start + timedelta(days=1)):
            cell = _cell(row, names, ids)
            cells[cell] = cells.get(cell, HistorySums()).plus(_sums(row))
    return cells


def _sums_of(
    source: SourceDatabase, day: str, names: SourceNames
) -> dict[HistoryCell, HistorySums]:
    """Return a day's cells from its daily sums, which have no organizations."""
    cells: dict[HistoryCell, HistorySums] = {}
    ids: dict[str, str] = {}
    with source.reading() as connection:
        teams = source.teams_of_day(connection, day)
        for row in source.daily_of(connection, day):
            team = teams.get(row["api_key"] or "")
            known = {**row, "team_id": team, "organization_id": None, "user": row["user_id"]}
            cell = _cell(known, names, ids)
            sums = HistorySums(
                row["api_requests"] or 0,
                row["failed_requests"] or 0,
                row["prompt_tokens"] or 0,
                row["completion_tokens"] or 0,
                _spend_of(row, f"daily spend {row['id']}"),
            )
            cells[cell] = cells.get(cell, HistorySums()).plus(sums)
    return cells


def _cell(row: Row, names: SourceNames, ids: dict[str, str]) -> HistoryCell:
    digest, team, org = row["api_key"] or "", row["team_id"] or "", row["organization_id"] or ""
    if digest not in ids:
        ids[digest] = names.key_id(digest) if digest else ""
    return HistoryCell(
        names.organisations.get(org, _text(org)),
        names.teams.get(team, _text(team)),
        ids[digest],
        _text(row["user"]),
        _text(row["model_group"]) or _text(row["model"]),
        _text(row["custom_llm_provider"]),
    )


def _sums(row: Row) -> HistorySums:
    return HistorySums(
        1,
        int(row["status"] == FAILED),
        row["prompt_tokens"] or 0,
        row["completion_tokens"] or 0,
        _spend_of(row, f"spend log {row['request_id']}"),
    )


def _spend_of(row: Row, place: str) -> int:
    try:
        return pusd_of(row["spend"] or "0")
    except ValueError as error:
        raise SourceError(f"{place}: `spend`: {error}: correct it") from error


def _text(given: str | None) -> str:
    """Return a shortened text without NUL, as the source is PostgreSQL, too."""
    return (given or "")[:TEXT_LIMIT]
