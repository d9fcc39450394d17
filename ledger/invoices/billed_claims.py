"""Posted invoices settle claims: together they say which part of each was billed.

A bill names days and models, no attempts (`claim_matching` says how they are matched). All posted
parts of all bills of a provider are matched anew with all of its claims each time: the result
follows from what is posted, in whichever order, and a bill that corrects another one corrects its
claims, too. The billed part of a settled claim goes on narrowing budgets as far as it is plausible.
A claim that a bill may still come for stays open. What a person waived stays waived.
"""

from collections.abc import Iterable, Sequence
from datetime import date

from sqlalchemy import Connection, and_, func, literal_column, or_, select

from ledger.budgets.open_claims import (
    BILLED,
    WAIVED,
    BudgetClaim,
    Resolution,
    provider_claims,
    replace_resolutions,
    serialize_claims,
)
from ledger.invoices.billed_periods import BilledAmount, BilledPeriod, PostedBill, billed_periods
from ledger.invoices.claim_matching import (
    REACH_DAYS,
    ClaimDemand,
    ClaimMatch,
    UnpostedBill,
    match_claims,
)
from ledger.invoices.reconcile import model_of
from ledger.orm.books import AttemptRow, ClaimRow
from ledger.orm.invoices import InvoiceItemRow, InvoiceRow
from ledger.orm.types import exact_sum
from ledger.spans import DAY_US
from ledger.writing.rows import LOST

UNCERTAIN = ("estimated", "bound", "continuous")  # bases of a cost that a bill may undercut
ADDS = "adds"  # `InvoiceRow.posted_as` of one that is owed beside others
_EPOCH = date(1970, 1, 1)


def reconcile_claims(connection: Connection, provider: str, resolution: Resolution) -> None:
    """Bring the provider's claims to what its posted invoices say. Repeating changes nothing.

    A claim that was settled by a bill and is not any more, as the bill was replaced, is open again.
    """
    serialize_claims(connection)
    claims = [
        claim for claim in provider_claims(connection, provider) if claim.resolution != WAIVED
    ]
    if not claims:
        return
    matches = _matches(connection, provider, claims)
    settled: dict[str, int] = {}
    reopened: dict[str, int] = {}
    for claim in claims:
        match = matches[claim.attempt_id]
        plausible = max(0, min(claim.plausible_pusd or 0, claim.surplus_pusd))
        if match.waits_for is not None:
            if claim.resolution is not None or claim.counted_pusd != plausible:
                reopened[claim.attempt_id] = plausible
            continue
        counted = min(plausible, match.part_pusd)
        if (claim.resolution, claim.counted_pusd) != (BILLED, counted):
            settled[claim.attempt_id] = counted
    replace_resolutions(connection, settled=settled, reopened=reopened, resolution=resolution)


def wait_texts(connection: Connection, claims: Iterable[BudgetClaim]) -> dict[str, str]:
    """Return, by attempt, what each open one of these claims waits for."""
    by_provider: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for claim in claims:
        if claim.resolution is not None:
            continue
        texts[claim.attempt_id] = "no provider sends an invoice of it"
        if claim.provider is not None:
            by_provider.setdefault(claim.provider, []).append(claim.attempt_id)
    for provider, attempts in by_provider.items():
        others = [
            claim
            for claim in provider_claims(connection, provider, locked=False)
            if claim.resolution != WAIVED
        ]
        matches = _matches(connection, provider, others)
        for attempt_id in attempts:
            match = matches.get(attempt_id)
            waits = match.waits_for if match is not None else None
            texts[attempt_id] = waits or "the next invoice that is posted settles it"
    return texts


def _matches(
    connection: Connection, provider: str, claims: Sequence[BudgetClaim]
) -> dict[str, ClaimMatch]:
    demands = [
        ClaimDemand(
            claim.attempt_id,
            claim.settled_us // DAY_US,
            model_of(claim.upstream_model),
            claim.surplus_pusd,
        )
        for claim in claims
    ]
    bills, unposted = _bills(connection, provider)
    periods = billed_periods(bills)
    sure = sure_costs(connection, provider, _reached(periods, demands))
    return match_claims(periods, sure, demands, unposted)


def _reached(
    periods: Sequence[BilledPeriod], demands: Sequence[ClaimDemand]
) -> list[tuple[int, int]]:
    """Return the stretches of days whose bookings matter: periods in reach of claims.

    The periods beside them are read, too: bookings of an edge may be billed in the neighbour.
    """
    days = {
        demand.day + ahead for demand in demands for ahead in range(-REACH_DAYS, REACH_DAYS + 1)
    }
    near = {place for place, period in enumerate(periods) if any(period.has(day) for day in days)}
    wanted = sorted({place + ahead for place in near for ahead in (-1, 0, 1)})
    spans: list[tuple[int, int]] = []
    for place in wanted:
        if not 0 <= place < len(periods):
            continue
        first, last = periods[place].first, periods[place].last
        if spans and first == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], last
        else:
            spans.append((first, last))
    return spans


def sure_costs(
    connection: Connection, provider: str, spans: Iterable[tuple[int, int]]
) -> dict[tuple[int, str], int]:
    """Return the booked costs that a bill has at least, by day since 1970 and model.

    An answer that was lost, or booked at its bound or an estimate, may be billed for less: what is
    not known of it must not stand against another's claim. One with a claim was made at its cost.
    """
    day = AttemptRow.settled_us.op("/")(literal_column(str(DAY_US)))
    is_sure = and_(AttemptRow.status != LOST, AttemptRow.basis.not_in(UNCERTAIN))
    costs: dict[tuple[int, str], int] = {}
    for first, last in spans:
        query = (
            select(
                day,
                AttemptRow.upstream_model,
                exact_sum(func.coalesce(AttemptRow.cost_pusd, 0)),
            )
            .outerjoin(ClaimRow, ClaimRow.attempt_id == AttemptRow.attempt_id)
            .where(
                AttemptRow.provider == provider,
                AttemptRow.settled_us >= first * DAY_US,
                AttemptRow.settled_us < (last + 1) * DAY_US,
                or_(is_sure, ClaimRow.attempt_id.is_not(None)),
            )
            .group_by(day, AttemptRow.upstream_model)
        )
        for number, model, pusd in connection.execute(query):
            key = int(number), model_of(model)
            costs[key] = costs.get(key, 0) + int(pusd)
    return costs


def _bills(connection: Connection, provider: str) -> tuple[list[PostedBill], list[UnpostedBill]]:
    """Return the provider's posted invoices in the order of their posting, and the others."""
    table, party = InvoiceRow, f"provider:{provider}"
    amounts: dict[int, list[BilledAmount]] = {}
    query = (
        select(
            InvoiceItemRow.invoice_id,
            InvoiceItemRow.day,
            InvoiceItemRow.item,
            exact_sum(InvoiceItemRow.amount_pusd),
        )
        .join(table, table.id == InvoiceItemRow.invoice_id)
        .where(table.party == party, table.posted_us.is_not(None))
        .group_by(InvoiceItemRow.invoice_id, InvoiceItemRow.day, InvoiceItemRow.item)
    )
    for number, day, item, pusd in connection.execute(query):
        amounts.setdefault(number, []).append(BilledAmount(_number(day), item, int(pusd)))
    posted: list[PostedBill] = []
    unposted: list[UnpostedBill] = []
    headers = (
        select(table.id, table.first_day, table.last_day, table.posted_us, table.posted_as)
        .where(table.party == party)
        .order_by(table.posted_us, table.id)
    )
    for number, first_day, last_day, posted_us, posted_as in connection.execute(headers):
        span = _number(first_day), _number(last_day)
        if posted_us is None:
            unposted.append(UnpostedBill(number, *span))
            continue
        # A host of an earlier release does not say: what shares days was told to add or replace.
        shares = any(bill.first <= span[1] and bill.last >= span[0] for bill in posted)
        adds = posted_as == ADDS or (posted_as is None and shares)
        posted.append(PostedBill(*span, adds, tuple(amounts.get(number, ()))))
    return posted, unposted


def _number(day: date) -> int:
    return (day - _EPOCH).days
