"""Adjustments that brought the ledger to an invoice, by party and bucket.

They belong to the invoiced day and to no team, so a reader of one team has none of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ledger.accounts import adjustments
from ledger.orm.tables import PostingRow, exact_sum
from ledger.reporting_zone import ReportingZone
from ledger.spans import DAY_US, Scope, rows

_PREFIX = adjustments("")
_GPU = "gpu:"
INSTANT = 1  # a bucket of one microsecond


@dataclass(frozen=True, slots=True)
class Adjustment:
    """An adjustment. `party` is the creditor as in payables: `provider:openai`, `gpu:chat`."""

    start_us: int
    party: str
    pusd: int


@dataclass(frozen=True, slots=True)
class AdjustedParty:
    """The sum of a period's adjustments for one party."""

    party: str
    pusd: int


def posted_adjustments(
    connection: Connection, scope: Scope, *, bucket_us: int
) -> Iterator[Adjustment]:
    """Yield the adjustments posted in the scope's time, by bucket.

    A range of account names uses their index; no collation sorts other letters in between.
    """
    if scope.team is not None:
        return
    start = (PostingRow.at_us - PostingRow.at_us % bucket_us).label("start_us")
    statement = (
        select(start, PostingRow.account, exact_sum(PostingRow.amount_pusd))
        .where(
            PostingRow.account >= "a",
            PostingRow.account < "b",
            PostingRow.account.startswith(_PREFIX),
            PostingRow.at_us >= scope.start_us,
            PostingRow.at_us < scope.end_us,
        )
        .group_by("start_us", PostingRow.account)
        .order_by("start_us", PostingRow.account)
    )
    for start_us, account, pusd in rows(connection, statement):
        name = account.removeprefix(_PREFIX)
        if pusd:
            yield Adjustment(start_us, name if name.startswith(_GPU) else f"provider:{name}", pusd)


def adjusted_by_day(connection: Connection, scope: Scope, zone: ReportingZone) -> dict[int, int]:
    """Return pico-USD of all parties by the start of each day in the zone."""
    sums: dict[int, int] = {}
    for adjustment in posted_adjustments(connection, scope, bucket_us=INSTANT):
        first = zone.day(adjustment.start_us)[0]
        sums[first] = sums.get(first, 0) + adjustment.pusd
    return sums


def adjusted_by_party(connection: Connection, scope: Scope) -> list[AdjustedParty]:
    """Return the sum of the scope's adjustments, by party."""
    sums: dict[str, int] = {}
    for adjustment in posted_adjustments(connection, scope, bucket_us=DAY_US):
        sums[adjustment.party] = sums.get(adjustment.party, 0) + adjustment.pusd
    return [AdjustedParty(party, pusd) for party, pusd in sorted(sums.items()) if pusd]
