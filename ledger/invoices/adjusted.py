"""Adjustments that brought the books to an invoice, by party and bucket: nobody's expense.

They belong to the day that was invoiced, and to no team, so a team's reader has none of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ledger.accounts import adjustments
from ledger.orm.tables import PostingRow, exact_sum
from ledger.spans import Scope, rows

_PREFIX = adjustments("")
_GPU = "gpu:"


@dataclass(frozen=True, slots=True)
class Adjustment:
    """`party` is whom it is owed to, as payables call it: `provider:openai`, `gpu:chat`."""

    start_us: int
    party: str
    pusd: int


def posted_adjustments(
    connection: Connection, scope: Scope, *, bucket_us: int
) -> Iterator[Adjustment]:
    """Yield what was posted for the scope's time, by bucket."""
    if scope.team is not None:
        return
    start = (PostingRow.at_us - PostingRow.at_us % bucket_us).label("start_us")
    statement = (
        select(start, PostingRow.account, exact_sum(PostingRow.amount_pusd))
        .where(
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
