"""The proof that every entry of the postings has its cause in the books. Part of `verify`."""

from sqlalchemy import Connection, select

from ledger.hours import hour_of
from ledger.invoices import invoice_of
from ledger.orm_books import Attempt, Posting
from ledger.orm_fleet import GpuHour
from ledger.orm_invoices import Invoice
from ledger.verify_hours import Found

SUSPENSE = ":suspense"
ROWS_AT_ONCE = 5_000


def entries_have_a_cause(connection: Connection) -> Found:
    """An entry belongs to an attempt, to a closed hour, or to an invoice that was posted."""
    hours = {
        (pool, hour_us, correction)
        for pool, hour_us, correction in connection.execute(
            select(GpuHour.pool, GpuHour.hour_us, GpuHour.correction)
        )
    }
    posted = set(
        connection.execute(select(Invoice.id).where(Invoice.posted_us.is_not(None))).scalars()
    )
    of_attempt = select(Attempt.attempt_id).where(Attempt.attempt_id == Posting.entry_id)
    query = select(Posting.entry_id).where(~of_attempt.exists()).distinct()
    rest = connection.execute(query).scalars().all()
    suspended = [entry.removesuffix(SUSPENSE) for entry in rest if entry.endswith(SUSPENSE)]
    known = _attempts(connection, suspended)
    for entry in rest:
        suspended_for = entry.removesuffix(SUSPENSE) if entry.endswith(SUSPENSE) else None
        if not (suspended_for in known or hour_of(entry) in hours or invoice_of(entry) in posted):
            yield entry, "posted, and no attempt, closed hour or posted invoice is behind it"


def _attempts(connection: Connection, ids: list[str]) -> set[str]:
    found: set[str] = set()
    for place in range(0, len(ids), ROWS_AT_ONCE):
        some = ids[place : place + ROWS_AT_ONCE]
        query = select(Attempt.attempt_id).where(Attempt.attempt_id.in_(some))
        found.update(connection.execute(query).scalars())
    return found
