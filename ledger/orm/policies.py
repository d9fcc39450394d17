"""Policies, operators' overrides, and people's entries. Rows are never edited."""

from sqlalchemy import BigInteger, Index, Text

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json, Serial


class PolicySetRow(LedgerBase):
    """A policy set. `document` is YAML; null restores the configuration file's policies."""

    __tablename__ = "policy_sets"

    number: Stored[int] = define_column(primary_key=True, autoincrement=False)
    document: Stored[str | None] = define_column(Text)
    recorded_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    note: Stored[str | None]


class OverrideRow(LedgerBase):
    """An override. It ends at `until_us`, or, if null, with the next entry of its subject."""

    __tablename__ = "overrides"

    number: Stored[int] = define_column(primary_key=True, autoincrement=False)
    subject: Stored[str]
    says: Stored[str]
    until_us: Stored[int | None] = define_column(BigInteger)
    recorded_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    note: Stored[str | None]


class ManualEntryRow(LedgerBase):
    """A person's entry, in force from `from_us` on. A null `says` withdraws the entry."""

    __tablename__ = "entered"
    __table_args__ = (Index(None, "subject", "number"),)

    number: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    subject: Stored[str]  # KIND:NAME
    says: Stored[dict[str, object] | None] = define_column(Json)
    from_us: Stored[int] = define_column(BigInteger)
    recorded_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    note: Stored[str | None]
