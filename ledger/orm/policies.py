"""Policies, what operators hold over them, and what people enter; no entry is ever edited."""

from sqlalchemy import BigInteger, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import Json, LedgerBase, Serial


class PolicySetRow(LedgerBase):
    """`document`: the policies as YAML; None: from then on those of the configuration file."""

    __tablename__ = "policy_sets"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    document: Mapped[str | None] = mapped_column(Text)
    recorded_us: Mapped[int] = mapped_column(BigInteger)
    actor: Mapped[str]
    note: Mapped[str | None]


class OverrideRow(LedgerBase):
    """`until_us`: when it is over by itself; None: when another entry of its subject says so."""

    __tablename__ = "overrides"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    subject: Mapped[str]
    says: Mapped[str]
    until_us: Mapped[int | None] = mapped_column(BigInteger)
    recorded_us: Mapped[int] = mapped_column(BigInteger)
    actor: Mapped[str]
    note: Mapped[str | None]


class ManualEntryRow(LedgerBase):
    """What a person entered; `from_us`: from when it counts. `says` None takes it back."""

    __tablename__ = "entered"
    __table_args__ = (Index(None, "subject", "number"),)

    number: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    subject: Mapped[str]  # KIND:NAME
    says: Mapped[dict[str, object] | None] = mapped_column(Json)
    from_us: Mapped[int] = mapped_column(BigInteger)
    recorded_us: Mapped[int] = mapped_column(BigInteger)
    actor: Mapped[str]
    note: Mapped[str | None]
