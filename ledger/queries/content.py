"""Reads of detector results: kinds of content, actions, counts of requests and matches."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, distinct, func, select

from ledger.orm.books import AttemptRow, RefusalRow
from ledger.spans import Scope

NOTHING: Final = "nothing"  # of a request that was inspected, and clean
NOTED: Final = "record"  # default action


@dataclass(frozen=True, slots=True)
class ContentCount:
    """Number of requests with one kind of content and action, and of matches in them."""

    kind: str
    done: str
    requests: int
    finds: int


def content_found(connection: Connection, scope: Scope) -> list[ContentCount]:
    """Return what detectors found in the span, most requests first; refused ones included."""
    served = scope.narrow(
        select(AttemptRow.content, func.count(distinct(AttemptRow.request_id)))
    ).where(AttemptRow.content.is_not(None), AttemptRow.content != NOTHING)
    refused = select(RefusalRow.content, func.count()).where(
        RefusalRow.refused_us >= scope.start_us,
        RefusalRow.refused_us < scope.end_us,
        RefusalRow.content.is_not(None),
        RefusalRow.content != NOTHING,
    )
    if scope.team is not None:
        refused = refused.where(RefusalRow.team_id == scope.team)
    requests: Counter[tuple[str, str]] = Counter()
    finds: Counter[tuple[str, str]] = Counter()
    for query, column in ((served, AttemptRow.content), (refused, RefusalRow.content)):
        for row, count in connection.execute(query.group_by(column)):
            found, _, done = row.partition("; ")
            for word in found.split():
                kind, _, number = word.partition("=")
                key = kind, done or NOTED
                requests[key] += count
                finds[key] += count * int(number) if number.isdigit() else 0
    counts = [ContentCount(*key, count, finds[key]) for key, count in requests.items()]
    return sorted(counts, key=lambda each: (-each.requests, each.kind, each.done))
