"""Policies, what operators hold over them, and what people enter; no entry is ever edited."""

from sqlalchemy import BigInteger, Index, Text

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json, Serial


class PolicySetRow(LedgerBase):
    """`document`: the policies as YAML; None: from then on those of the configuration file."""

    __tablename__ = "policy_sets"

    number: Stored[int] = define_column(primary_key=True, autoincrement=False)
    document: Stored[str | None] = define_column(Text)
    recorded_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    note: Stored[str | None]


class OverrideRow(LedgerBase):
    """`until_us`: when it is over by itself; None: when another entry of its subject says so."""

    __tablename__ = "overrides"

    number: Stored[int] = define_column(primary_key=True, autoincrement=False)
    subject: Stored[str]
    says: Stored[str]
    until_us: Stored[int | None] = define_column(BigInteger)
    recorded_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    note: Stored[str | None]


class ManualEntryRow(LedgerBase):
    """An entry of a person; `from_us`: its first instant. `says` of None withdraws it."""

    __tablename__ = "entered"
    __table_args__ = (Index(None, "subject", "number"),)

    number: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    subject: Stored[str]  # KIND:NAME
    says: Stored[dict[str, object] | None] = define_column(Json)
    from_us: Stored[int] = define_column(BigInteger)
    recorded_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    note: Stored[str | None]
