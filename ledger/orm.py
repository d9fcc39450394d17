"""Every table of the ledger in one namespace: `from ledger import orm`, then `orm.Attempt`.

The definitions live by subject in `orm_identity`, `orm_books`, `orm_budgets` and `orm_fleet`;
importing this module registers all of them on `Base.metadata`, which the migrations compare with.
"""

from ledger.orm_books import (
    Attempt,
    AttemptDecision,
    ComparedCost,
    ConfigVersion,
    JournalPosition,
    Posting,
    PriceVersion,
    Quarantined,
    Refusal,
)
from ledger.orm_budgets import Budget, BudgetWindow, Grant, HoldRow
from ledger.orm_fleet import (
    Capacity,
    CatalogEntry,
    EngineSample,
    GpuContract,
    GpuHour,
    GpuHourTeam,
)
from ledger.orm_identity import Key, Meta, Organisation, Team, User
from ledger.orm_types import Base, Total, exact_sum

__all__ = [
    "Attempt",
    "AttemptDecision",
    "Base",
    "Budget",
    "BudgetWindow",
    "Capacity",
    "CatalogEntry",
    "ComparedCost",
    "ConfigVersion",
    "EngineSample",
    "GpuContract",
    "GpuHour",
    "GpuHourTeam",
    "Grant",
    "HoldRow",
    "JournalPosition",
    "Key",
    "Meta",
    "Organisation",
    "Posting",
    "PriceVersion",
    "Quarantined",
    "Refusal",
    "Team",
    "Total",
    "User",
    "exact_sum",
]
