"""Every table of the ledger in one namespace: `from ledger import orm`, then `orm.Attempt`.

The definitions live by subject in `orm_identity`, `orm_books`, `orm_budgets`, `orm_fleet`,
`orm_invoices`, `orm_market`, `orm_policies`, `orm_registers`, `orm_seals`, `orm_rollups` and
`orm_batches`; importing this module registers all of them on `Base.metadata`, which the
migrations compare with.
"""

from ledger.orm_batches import Batch, BatchLine, File, FileChunk, Outgoing, OutgoingLine
from ledger.orm_books import (
    Attempt,
    AttemptDecision,
    ComparedCost,
    ConfigVersion,
    JournalPosition,
    Posting,
    PriceImport,
    PriceVersion,
    Quarantined,
    Refusal,
)
from ledger.orm_budgets import Budget, BudgetAlert, BudgetVersion, BudgetWindow, Grant, HoldRow
from ledger.orm_condensings import (
    CondensedPosting,
    CondensedRefusal,
    Condensing,
    RetiredHolds,
)
from ledger.orm_fleet import (
    Capacity,
    CatalogEntry,
    EngineSample,
    EngineSampleHour,
    GpuContract,
    GpuHour,
    GpuHourTeam,
)
from ledger.orm_identity import KeptAnswer, Key, Meta, Organisation, Submission, Team, User
from ledger.orm_invoices import Invoice, InvoiceItem
from ledger.orm_market import GpuType
from ledger.orm_policies import Override, PolicySet
from ledger.orm_registers import RegisterEntry
from ledger.orm_rollups import (
    RollupCell,
    RollupComparedDay,
    RollupComparedHour,
    RollupComparedQuarter,
    RollupComparedWeek,
    RollupComparison,
    RollupDay,
    RollupHour,
    RollupLoad,
    RollupLoadDay,
    RollupLoadHour,
    RollupPacking,
    RollupPosition,
    RollupQuarter,
    RollupWaiting,
    RollupWeek,
)
from ledger.orm_seals import RetiredUse, Retirement, Seal, SealMark, Verification
from ledger.orm_types import Base, Total, exact_sum

__all__ = [
    "Attempt",
    "AttemptDecision",
    "Base",
    "Batch",
    "BatchLine",
    "Budget",
    "BudgetAlert",
    "BudgetVersion",
    "BudgetWindow",
    "Capacity",
    "CatalogEntry",
    "ComparedCost",
    "CondensedPosting",
    "CondensedRefusal",
    "Condensing",
    "ConfigVersion",
    "EngineSample",
    "EngineSampleHour",
    "File",
    "FileChunk",
    "GpuContract",
    "GpuHour",
    "GpuHourTeam",
    "GpuType",
    "Grant",
    "HoldRow",
    "Invoice",
    "InvoiceItem",
    "JournalPosition",
    "KeptAnswer",
    "Key",
    "Meta",
    "Organisation",
    "Outgoing",
    "OutgoingLine",
    "Override",
    "PolicySet",
    "Posting",
    "PriceImport",
    "PriceVersion",
    "Quarantined",
    "Refusal",
    "RegisterEntry",
    "RetiredHolds",
    "RetiredUse",
    "Retirement",
    "RollupCell",
    "RollupComparedDay",
    "RollupComparedHour",
    "RollupComparedQuarter",
    "RollupComparedWeek",
    "RollupComparison",
    "RollupDay",
    "RollupHour",
    "RollupLoad",
    "RollupLoadDay",
    "RollupLoadHour",
    "RollupPacking",
    "RollupPosition",
    "RollupQuarter",
    "RollupWaiting",
    "RollupWeek",
    "Seal",
    "SealMark",
    "Submission",
    "Team",
    "Total",
    "User",
    "Verification",
    "exact_sum",
]
