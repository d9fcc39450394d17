"""Judges what a team's rows say: by the books of its hard budget, and by an honest bill."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from billing_provider import ProviderCall


def faults_of(
    rows: Sequence[Mapping[str, Any]], calls: Iterable[ProviderCall], limit_usd: float
) -> list[str]:
    """Each begins with the invariant that does not hold."""
    bills, faults = {call.id: call.bill.pusd for call in calls}, []
    booked = sum(row["cost_pusd"] or 0 for row in rows)
    if booked > limit_usd * 1e12:
        faults.append(f"limit: {booked} booked of {limit_usd} dollars")
    for row in rows:
        name, cost, bill = row["attempt_id"], row["cost_pusd"], bills.get(row["attempt_id"], 0)
        if cost is None:
            faults.append(f"priced: {name} has no cost")
            continue
        if cost > row["bound_pusd"]:
            faults.append(f"hold: {name} has {cost} booked, {row['bound_pusd']} held")
        if max(cost, row["claimed_pusd"] or 0) < bill:
            faults.append(f"bill: {name} has {cost} booked, {bill} billed")
    if len({row["attempt_id"] for row in rows}) != len(rows):
        faults.append("row: an attempt has two")
    return faults
