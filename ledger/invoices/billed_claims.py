"""Posted invoices settle claims: together they say which part of each was billed.

A bill names days and models and no attempts (`billed_parts` says how they are matched). All posted
parts of all bills of a provider are matched anew with all of its claims each time. So the result
follows from what is posted, and a bill that corrects another one corrects its claims, too.
The billed part of a settled claim goes on narrowing budgets as far as it is plausible.
A claim that a bill may still come for stays open. A claim that a person waived stays waived.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, and_, case, func, or_, select

from ledger.budgets.open_claims import (
    BILLED,
    WAIVED,
    BudgetClaim,
    Resolution,
    provider_claims,
    replace_resolutions,
    serialize_claims,
)
from ledger.invoices.billed_parts import ClaimDemand
from ledger.invoices.billed_periods import BilledPeriod, billed_periods
from ledger.invoices.billing_days import billing_day, day_column, day_start_us
from ledger.invoices.claim_matching import ClaimMatch, match_claims, reached_places
from ledger.invoices.posted_bills import newest_offset, read_bills
from ledger.invoices.reconcile import model_of
from ledger.orm.books import AttemptRow, ClaimRow
from ledger.orm.types import exact_sum
from ledger.writing.rows import LOST

UNCERTAIN = ("estimated", "bound", "continuous")  # bases of a cost that a bill may undercut


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
    offset_min = newest_offset(connection, provider)
    demands = [
        ClaimDemand(
            claim.attempt_id,
            billing_day(claim.settled_us, offset_min),
            model_of(claim.upstream_model),
            claim.surplus_pusd,
        )
        for claim in claims
    ]
    bills, unposted = read_bills(connection, provider)
    periods = billed_periods(bills)
    spans = _join([periods[place] for place in reached_places(periods, demands)])
    sure, uncertain = booked_by_day(connection, provider, spans, offset_min)
    return match_claims(periods, sure, demands, unposted, uncertain)


def _join(periods: Iterable[BilledPeriod]) -> list[tuple[int, int]]:
    """Return the first and last days of periods, those that touch as one."""
    spans: list[tuple[int, int]] = []
    for period in periods:
        if spans and period.first == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], period.last
        else:
            spans.append((period.first, period.last))
    return spans


def booked_by_day(
    connection: Connection, provider: str, spans: Iterable[tuple[int, int]], offset_min: int
) -> tuple[dict[tuple[int, str], int], dict[tuple[int, str], int]]:
    """Return the booked costs that are sure and those that are not, by billing day and model.

    A lost answer, and one that was booked at its bound or at an estimate, may be billed for less.
    An attempt with a claim is booked at its cost: its bill has no less.
    """
    day = day_column(AttemptRow.settled_us, offset_min)
    told = and_(AttemptRow.status != LOST, AttemptRow.basis.not_in(UNCERTAIN))
    is_sure = case((or_(told, ClaimRow.attempt_id.is_not(None)), 1), else_=0)
    sure: dict[tuple[int, str], int] = {}
    uncertain: dict[tuple[int, str], int] = {}
    for first, last in spans:
        query = (
            select(
                day,
                AttemptRow.upstream_model,
                is_sure,
                exact_sum(func.coalesce(AttemptRow.cost_pusd, 0)),
            )
            .outerjoin(ClaimRow, ClaimRow.attempt_id == AttemptRow.attempt_id)
            .where(
                AttemptRow.provider == provider,
                AttemptRow.settled_us >= day_start_us(first, offset_min),
                AttemptRow.settled_us < day_start_us(last + 1, offset_min),
            )
            .group_by(day, AttemptRow.upstream_model, is_sure)
        )
        for number, model, of_sure, pusd in connection.execute(query):
            costs, key = sure if of_sure else uncertain, (int(number), model_of(model))
            costs[key] = costs.get(key, 0) + int(pusd)
    return sure, uncertain
