"""Operations on claims: provider bills beyond the booked cost, and waivers of them."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, INVOICES
from gateway.control.admin.verb import OperationContext, OperationRefused, list_document, verb
from ledger.budgets.open_claims import (
    BILLED,
    WAIVED,
    BudgetClaim,
    Resolution,
    claims_of,
    list_claims,
    resolve_claims,
    serialize_claims,
)
from ledger.invoices.billed_claims import wait_texts
from ledger.manual_entries import ManualEntry, enter
from ledger.money import usd_exact

LISTED, LISTED_MOST = 50, 1_000
WAIVED_MOST = 1_000  # attempts of one order

_Attempt = Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="as listed")]


class ListClaimsInput(msgspec.Struct, forbid_unknown_fields=True):
    team: Annotated[str | None, msgspec.Meta(description="this team alone; default: all")] = None
    whole: Annotated[bool, msgspec.Meta(description="those that were resolved, too")] = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=LISTED_MOST)] = LISTED


class WaiveClaimsInput(msgspec.Struct, forbid_unknown_fields=True):
    attempts: Annotated[
        list[_Attempt],
        msgspec.Meta(min_length=1, max_length=WAIVED_MOST, description="whose claims are not owed"),
    ]


@verb(
    "GET /claims",
    INVOICES,
    "invoices claims",
    "What providers claim beyond what was booked, the latest first",
    ListClaimsInput,
)
def claims_list(place: OperationContext, given: ListClaimsInput) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        found = list_claims(connection, given.team, whole=given.whole, limit=given.limit)
        waits = wait_texts(connection, found)
    return list_document([_document(claim, waits.get(claim.attempt_id)) for claim in found])


@verb(
    "POST /claims/waive",
    INVOICES + APPLY,
    "invoices waive",
    "Say that claims are not owed: they narrow no budget any more",
    WaiveClaimsInput,
)
def claims_waive(place: OperationContext, given: WaiveClaimsInput) -> dict[str, Any]:
    """Waive all named claims or none. Claims stay in the ledger; each waiver is recorded.

    A claim that was already waived does not change. One that a posted bill has is owed.
    """
    named = dict.fromkeys(sorted(given.attempts), 0)
    with place.ledger.begin() as connection:
        serialize_claims(connection)
        known = claims_of(connection, [*named])
        missing = named.keys() - {claim.attempt_id for claim in known}
        if missing:
            words = f"no claim of attempt {min(missing)}; `breakeven invoices claims`"
            raise OperationRefused(words, param="attempts")
        _refuse_billed(known)
        waived = [claim for claim in known if claim.resolution != WAIVED]
        resolution = Resolution(WAIVED, place.now_us, place.by)
        resolve_claims(connection, {claim.attempt_id: 0 for claim in waived}, resolution)
        for claim in waived:
            enter(connection, _waiver(claim, resolution))
    counted = sum(claim.counted_pusd for claim in waived)
    return {"claims": len(waived), "no_longer_counted_pusd": counted, "by": place.by}


def _refuse_billed(known: Sequence[BudgetClaim]) -> None:
    """Refuse to waive what the provider billed: the budgets of its team would hide paid money."""
    billed = [claim for claim in known if claim.resolution == BILLED and claim.counted_pusd]
    if billed:
        words = (
            f"a posted bill has ${usd_exact(billed[0].counted_pusd)} of the claim of attempt "
            f"{billed[0].attempt_id}: if it is not owed, post the provider's corrected bill "
            "(`breakeven invoices post NUMBER --replaces`), which settles the claim anew"
        )
        raise OperationRefused(words, param="attempts")


def _waiver(claim: BudgetClaim, resolution: Resolution) -> ManualEntry:
    says = {"resolution": resolution.word, "was": claim.resolution, "counted_pusd": 0,
            "counted_before_pusd": claim.counted_pusd}  # fmt: skip
    at_us = resolution.at_us
    return ManualEntry(0, f"claim:{claim.attempt_id}", says, at_us, at_us, resolution.by)


def _document(claim: BudgetClaim, waits_for: str | None) -> dict[str, Any]:
    plausible = claim.plausible_pusd
    return {
        "attempt": claim.attempt_id,
        "settled_us": claim.settled_us,
        "team": claim.team,
        "provider": claim.provider,
        "target": claim.target,
        "booked_usd": usd_exact(claim.booked_pusd),
        "claimed_usd": usd_exact(claim.claimed_pusd),
        "plausible_usd": None if plausible is None else usd_exact(plausible),
        "counted_usd": usd_exact(claim.counted_pusd),
        "resolution": claim.resolution,
        "resolved_us": claim.resolved_us,
        "resolved_by": claim.resolved_by,
        "waits_for": waits_for,
    }


VERBS = (claims_list, claims_waive)
