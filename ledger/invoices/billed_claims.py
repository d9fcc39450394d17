"""Settlement of claims by posted invoices, which together show the billed part of each.

A bill names days and models, not attempts (`billed_parts` explains the matching). Each time, all
posted bills of a provider are matched again with all of its claims. So the result depends only on
what is posted, and a correcting bill corrects the claims too. The billed part of a settled claim
still reduces budgets as far as it is plausible. A claim that a bill may still cover stays open. A
waived claim stays waived and keeps its share of the bill. A settled claim is not changed if
attempts within `READ_DAYS` were retired by an earlier release, which kept no sums by model.
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

# The reason for a claim whose settlement depends on the time zone of the provider's days.
ZONE: Final = (
    "bills fit several time zones of the provider's days: set its `billing_utc_offset`, and the "
    "next invoice that is posted settles it"
)


def reconcile_claims(connection: Connection, provider: str, resolution: Resolution) -> None:
    """Settle or reopen the provider's claims by its posted invoices. Idempotent.

    A claim whose bill was replaced, and that is no longer billed, is reopened.
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
    """Return a sentence on what each open claim waits for, by attempt."""
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
    """The matches of claims. `frozen` are settled claims near unknown bookings: they stay."""

    by_attempt: dict[str, ClaimMatch]
    frozen: frozenset[str]

    def agreed(self, other: Self) -> Self:
        """Return the common result; a claim that differs waits for the provider's zone."""
        by_attempt = {
            attempt_id: match
            if match == other.by_attempt[attempt_id]
            else ClaimMatch(min(match.part_pusd, other.by_attempt[attempt_id].part_pusd), ZONE)
            for attempt_id, match in self.by_attempt.items()
        }
        return self._replace(by_attempt=by_attempt, frozen=self.frozen | other.frozen)


def _match(connection: Connection, provider: str, claims: Sequence[BudgetClaim]) -> _Matches:
    """Match all claims of a provider with its bills, including waived ones.

    A bill smaller than the claims is shared in proportion. The shares do not depend on which claims
    are waived, or leave the ledger with their attempts.
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
            # No single offset fits a day of 23 or 25 hours, so the offsets prove nothing.
            part_pusd = matches.by_attempt[claim.attempt_id].part_pusd
            matches.by_attempt[claim.attempt_id] = ClaimMatch(part_pusd, ZONE)
    return matches


def _fitting_offsets(
    connection: Connection, provider: str, claims: Sequence[BudgetClaim]
) -> tuple[list[int], set[int]]:
    """Return the offsets that fit all bills about these claims, UTC first.

    If no offset fits, the bills differ from the ledger in other ways, and the result is UTC. The
    second value is the days near a bill that may include a clock change.
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
            # A partial or wrong bill fits no offset.
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
    """Return the first and last days of periods, with adjacent periods joined."""
    spans: list[tuple[int, int]] = []
    for period in periods:
        if spans and period.first == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], period.last
        else:
            spans.append((period.first, period.last))
    return spans
