"""Verification that every entry of the postings has its cause in the ledger."""

from sqlalchemy import Connection, func, or_, select

from ledger.accounts import SUSPENSE
from ledger.database import in_groups
from ledger.fleet.hours import hour_of
from ledger.invoices.invoice_entries import invoice_of
from ledger.orm.books import AttemptRow, PostingRow
from ledger.orm.fleet import GpuHourRow
from ledger.orm.invoices import InvoiceRow
from ledger.orm.types import exact_sum
from ledger.seals.compactions import TEAMS, teams_balances
from ledger.seals.retirements import RetiredTotals, retired_totals
from ledger.verify.cells import team_costs, whole_days_until
from ledger.verify.hours import Found

_NAMED = ("gpu:%", "invoice:%", f"%{SUSPENSE}")
ROWS_AT_ONCE = 5_000


def entries_have_a_cause(connection: Connection) -> Found:
    """Check that an entry belongs to an attempt, a closed hour, or a posted invoice."""
    hours = {
        (pool, hour_us, correction)
        for pool, hour_us, correction in connection.execute(
            select(GpuHourRow.pool, GpuHourRow.hour_us, GpuHourRow.correction)
        )
    }
    posted = set(
        connection.execute(select(InvoiceRow.id).where(InvoiceRow.posted_us.is_not(None))).scalars()
    )
    of_attempt = select(AttemptRow.attempt_id).where(AttemptRow.attempt_id == PostingRow.entry_id)
    query = select(PostingRow.entry_id).where(~of_attempt.exists()).distinct()
    gone = retired_totals(connection)
    if gone.attempts:
        query = query.where(or_(*(PostingRow.entry_id.like(name) for name in _NAMED)))
        yield from _retired_are_posted(connection, gone)
    rest = connection.execute(query).scalars().all()
    suspended = [entry.removesuffix(SUSPENSE) for entry in rest if entry.endswith(SUSPENSE)]
    known = _attempts(connection, suspended)
    for entry in rest:
        suspended_for = entry.removesuffix(SUSPENSE) if entry.endswith(SUSPENSE) else None
        if not (suspended_for in known or hour_of(entry) in hours or invoice_of(entry) in posted):
            yield entry, "posted, and no attempt, closed hour or posted invoice is behind it"


def _retired_are_posted(connection: Connection, gone: RetiredTotals) -> Found:
    """Check that entries of retired attempts add up to the totals of their retirement."""
    of_attempt = select(AttemptRow.attempt_id).where(AttemptRow.attempt_id == PostingRow.entry_id)
    query = (
        select(
            PostingRow.account,
            func.count(PostingRow.entry_id.distinct()),
            exact_sum(PostingRow.amount_pusd),
        )
        .where(
            ~of_attempt.exists(),
            PostingRow.account.like(f"{TEAMS}%"),
            *(~PostingRow.entry_id.like(name) for name in _NAMED),
        )
        .group_by(PostingRow.account)
    )
    entries, charged = teams_balances(connection)
    for account, count, amount in connection.execute(query):
        entries, charged[account] = entries + count, charged.get(account, 0) + int(amount)
    pusd = sum(charged.values())
    if (entries, pusd) != (gone.posted, gone.cost_pusd):
        yield (
            "retired attempts",
            (
                f"{entries} entries of {pusd} pico-USD have no attempt, and {gone.posted} that had "
                f"cost {gone.cost_pusd} were retired"
            ),
        )
    summed = team_costs(connection, whole_days_until(connection))
    for team in sorted({*summed, *(account.removeprefix(TEAMS) for account in charged)}):
        told, posted = summed.get(team, 0), charged.get(f"{TEAMS}{team}", 0)
        if told != posted:
            words = f"sums say that its attempts that went cost {told}, its postings {posted}"
            yield f"retired attempts of {team}", words


def _attempts(connection: Connection, ids: list[str]) -> set[str]:
    found: set[str] = set()
    for some in in_groups(ids, ROWS_AT_ONCE):
        query = select(AttemptRow.attempt_id).where(AttemptRow.attempt_id.in_(some))
        found.update(connection.execute(query).scalars())
    return found
