"""The audit log as a hash chain: contracts, price imports, policies, keys.

Rows of the audited tables are added and never edited, except for a key's revocation. Each row is
entered here once, some seconds after its commit, and so is a revocation. See
`ledger/seals/audit_log.py`.
"""

from sqlalchemy import BigInteger, LargeBinary, UniqueConstraint

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json


class RegisterEntryRow(LedgerBase):
    """An entry of the audit log. `said` is the audited row without secrets.

    `leaf` is the hash of the entry, `chain` the hash up to this entry. `before` is the previous
    entry of the same subject, such as a pool's previous contract.
    """

    __tablename__ = "register_entries"
    __table_args__ = (UniqueConstraint("register", "row", "event"),)

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    at_us: Stored[int] = define_column(BigInteger)
    register: Stored[str]  # the table
    row: Stored[str]  # its key
    event: Stored[str]  # made | revoked
    actor: Stored[str | None]  # null: unknown
    before: Stored[int | None] = define_column(BigInteger)
    said: Stored[dict[str, object]] = define_column(Json)
    leaf: Stored[bytes] = define_column(LargeBinary)
    chain: Stored[bytes] = define_column(LargeBinary)
