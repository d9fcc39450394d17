"""Posted invoices settle claims: together they say which part of each was billed.

A bill names days and models and no attempts (`billed_parts` says how they are matched). All posted
parts of all bills of a provider are matched anew with all of its claims each time. So the result
follows from what is posted, and a bill that corrects another one corrects its claims, too.
The billed part of a settled claim goes on narrowing budgets as far as it is plausible.
A claim that a bill may still come for stays open. A claim that a person waived stays waived, and
keeps its share of the bill. A settled claim stays as it is where attempts within `READ_DAYS` of it
were retired by an earlier release, which kept no sums of them by model.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

from sqlalchemy import Connection

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
from ledger.invoices.billing_days import billing_day
from ledger.invoices.bookings import provider_bookings
from ledger.invoices.claim_matching import READ_DAYS, ClaimMatch, match_claims, reached_places
from ledger.invoices.offset_search import find_zone
from ledger.invoices.posted_bills import known_offset, posted_spans, read_bills
from ledger.invoices.reconcile import model_of

# What a claim waits for whose settlement depends on the hour at which the provider's days begin.
ZONE: Final = (
    "bills fit several time zones of the provider's days: set its `billing_utc_offset`, and the "
    "next invoice that is posted settles it"
)


def reconcile_claims(connection: Connection, provider: str, resolution: Resolution) -> None:
    """Bring the provider's claims to what its posted invoices say. Repeating changes nothing.

    A claim that was settled by a bill and is not any more, as the bill was replaced, is open again.
    """
    serialize_claims(connection)
    claims = provider_claims(connection, provider)
    if all(claim.resolution == WAIVED for claim in claims):
        return
    matches = _match(connection, provider, claims)
    settled: dict[str, int] = {}
    reopened: dict[str, int] = {}
    for claim in claims:
        if claim.resolution == WAIVED or claim.attempt_id in matches.frozen:
            continue
        match = matches.by_attempt[claim.attempt_id]
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
        others = provider_claims(connection, provider, locked=False)
        matches = _match(connection, provider, others).by_attempt
        for attempt_id in attempts:
            match = matches.get(attempt_id)
            waits = match.waits_for if match is not None else None
            texts[attempt_id] = waits or "the next invoice that is posted settles it"
    return texts


class _Matches(NamedTuple):
    """`frozen` are settled claims about which bookings are unknown: they stay as they are."""

    by_attempt: dict[str, ClaimMatch]
    frozen: frozenset[str]

    def agreed(self, other: Self) -> Self:
        """Return what both say; a claim of which they differ waits for its provider's zone."""
        by_attempt = {
            attempt_id: match
            if match == other.by_attempt[attempt_id]
            else ClaimMatch(min(match.part_pusd, other.by_attempt[attempt_id].part_pusd), ZONE)
            for attempt_id, match in self.by_attempt.items()
        }
        return self._replace(by_attempt=by_attempt, frozen=self.frozen | other.frozen)


def _match(connection: Connection, provider: str, claims: Sequence[BudgetClaim]) -> _Matches:
    """Match all claims of a provider with its bills, those that were waived, too.

    A bill that has less than all claims is shared in proportion, whoever waives one of them, and
    whichever of them leave the books with their attempts.
    """
    known = known_offset(connection, provider)
    if known is not None:
        return _match_at(connection, provider, claims, known)
    (first, *others), changed = _fitting_offsets(connection, provider, claims)
    matches = _match_at(connection, provider, claims, first)
    for offset_min in others:
        matches = matches.agreed(_match_at(connection, provider, claims, offset_min))
    for claim in claims:
        if billing_day(claim.settled_us, 0) in changed:
            # No offset has the hour more or less of the day: what two say is no proof.
            part_pusd = matches.by_attempt[claim.attempt_id].part_pusd
            matches.by_attempt[claim.attempt_id] = ClaimMatch(part_pusd, ZONE)
    return matches


def _fitting_offsets(
    connection: Connection, provider: str, claims: Sequence[BudgetClaim]
) -> tuple[list[int], set[int]]:
    """Return the offsets under which all bills about these claims can be true, UTC first.

    Where there is none, the bills differ from the books in other ways: then UTC alone. The second
    are days that a bill reaches on one of whose days clocks may have changed.
    """
    days = {billing_day(claim.settled_us, 0) for claim in claims}
    reach = READ_DAYS + 1
    fitting: set[int] = set()
    changed: set[int] = set()
    for span in posted_spans(connection, provider):
        about = {day for day in days if span.first - reach <= day <= span.last + reach}
        if about:
            zone = find_zone(connection, span)
            if zone.changes:
                changed |= about
                continue
            offsets = set(zone.fitting)
            # A part of a bill, and one that is wrong, fits none.
            fitting = offsets if not fitting else fitting & (offsets or fitting)
    return (sorted(fitting, key=abs) if fitting else [0]), changed


def _match_at(
    connection: Connection, provider: str, claims: Sequence[BudgetClaim], offset_min: int
) -> _Matches:
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
    bookings = provider_bookings(connection, provider, spans, offset_min)
    rivals = [
        ClaimDemand(f"retired {day} {model}", day, model, pusd)
        for (day, model), pusd in bookings.retired_claims.items()
    ]
    matches = match_claims(
        periods, bookings.sure, demands, unposted, bookings.uncertain, rivals=rivals
    )
    unknown = {
        day + ahead for day in bookings.unknown for ahead in range(-READ_DAYS, READ_DAYS + 1)
    }
    frozen = frozenset(
        claim.attempt_id
        for claim, demand in zip(claims, demands, strict=True)
        if claim.resolution == BILLED and demand.day in unknown
    )
    return _Matches(matches, frozen)


def _join(periods: Iterable[BilledPeriod]) -> list[tuple[int, int]]:
    """Return the first and last days of periods, those that touch as one."""
    spans: list[tuple[int, int]] = []
    for period in periods:
        if spans and period.first == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], period.last
        else:
            spans.append((period.first, period.last))
    return spans
