"""An invoice settles the claims of its days: it says which part of them was billed.

A bill names days and models, no attempts. What it has of a day beyond what was booked is the part
of the day's claims that is owed, shared among them in proportion; that part goes on narrowing
budgets, the rest does not. A day of which the bill has less than was booked says nothing of its
claims: a part of the bill may be missing, or answers were booked at their bound; they stay open.
What a person waived stays waived.
"""

from collections.abc import Mapping

from sqlalchemy import Connection

from ledger.budgets.open_claims import (
    WAIVED,
    BudgetClaim,
    Resolution,
    billed_parts,
    provider_claims,
    resolve_claims,
)
from ledger.spans import DAY_US


def reconcile_claims(
    connection: Connection,
    provider: str,
    days: range,
    beyond_pusd: Mapping[int, int],
    resolution: Resolution,
) -> None:
    """Settle the claims of these days, which are numbers since 1970.

    `beyond_pusd`: by day, what the bill has beyond what was booked without claims.
    """
    span = days.start * DAY_US, days.stop * DAY_US
    by_day: dict[int, list[BudgetClaim]] = {}
    for claim in provider_claims(connection, provider, *span):
        if claim.resolution != WAIVED:
            by_day.setdefault(claim.settled_us // DAY_US, []).append(claim)
    counted: dict[str, int] = {}
    for day, claims in by_day.items():
        beyond = beyond_pusd.get(day, 0)
        if beyond < 0:
            continue
        billed = billed_parts(claims, beyond)
        for claim in claims:
            part = billed.get(claim.attempt_id, 0)
            counted[claim.attempt_id] = min(claim.plausible_pusd or 0, part)
    if counted:
        resolve_claims(connection, counted, resolution)
