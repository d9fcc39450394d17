"""Registers of the books as a chained log: contracts, price imports, policies, keys.

Rows of these tables are added and never edited, but for a key's revocation. Each is entered here
once, some seconds after its commit, and so is the revocation. See `registers`.
"""

from sqlalchemy import BigInteger, LargeBinary, UniqueConstraint

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json


class RegisterEntryRow(LedgerBase):
    """`said`: the row without secrets; `leaf`: the hash of all of it; `chain`: of all until here.

    `before` is the entry that this one follows for the same subject (a pool's contract before).
    """

    __tablename__ = "register_entries"
    __table_args__ = (UniqueConstraint("register", "row", "event"),)

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    at_us: Stored[int] = define_column(BigInteger)
    register: Stored[str]  # the table
    row: Stored[str]  # its key
    event: Stored[str]  # made | revoked
    actor: Stored[str | None]  # None: nobody wrote who
    before: Stored[int | None] = define_column(BigInteger)
    said: Stored[dict[str, object]] = define_column(Json)
    leaf: Stored[bytes] = define_column(LargeBinary)
    chain: Stored[bytes] = define_column(LargeBinary)
