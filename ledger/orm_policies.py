"""Sets of routing policies that were put in force, one after the other; none is ever edited."""

from sqlalchemy import BigInteger, Text
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm_types import Base


class PolicySet(Base):
    """`document`: the policies as YAML; None: from then on those of the configuration file."""

    __tablename__ = "policy_sets"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    document: Mapped[str | None] = mapped_column(Text)
    recorded_us: Mapped[int] = mapped_column(BigInteger)
    actor: Mapped[str]
    note: Mapped[str | None]
