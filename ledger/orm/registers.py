"""What the books are kept by, as a chained log: contracts, price imports, policies, keys.

Rows of these tables are added and never edited, but for a key's revocation. Each is entered here
once, some seconds after its commit, and so is the revocation. See `registers`.
"""

from sqlalchemy import BigInteger, LargeBinary, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import Json, LedgerBase


class RegisterEntryRow(LedgerBase):
    """`said`: the row without secrets; `leaf`: the hash of all of it; `chain`: of all until here.

    `before` is the entry that this one follows for the same subject (a pool's contract before).
    """

    __tablename__ = "register_entries"
    __table_args__ = (UniqueConstraint("register", "row", "event"),)

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    at_us: Mapped[int] = mapped_column(BigInteger)
    register: Mapped[str]  # the table
    row: Mapped[str]  # its key
    event: Mapped[str]  # made | revoked
    actor: Mapped[str | None]  # None: nobody wrote who
    before: Mapped[int | None] = mapped_column(BigInteger)
    said: Mapped[dict[str, object]] = mapped_column(Json)
    leaf: Mapped[bytes] = mapped_column(LargeBinary)
    chain: Mapped[bytes] = mapped_column(LargeBinary)
