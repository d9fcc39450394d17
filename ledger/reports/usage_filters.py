"""Which attempts a usage or costs page counts: a value that needs nothing of the ledger."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UsageFilters:
    """Which attempts count; empty: all. The team that a reader is bound to is in its scope."""

    teams: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    batch: bool | None = None  # of batches alone, or without them
