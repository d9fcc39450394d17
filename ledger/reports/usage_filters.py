"""Filters of the usage and costs pages, as a value that needs nothing else of the ledger."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UsageFilters:
    """Filters of attempts; empty: all. The scope holds the team that a reader is limited to."""

    teams: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    batch: bool | None = None  # of batches alone, or without them
