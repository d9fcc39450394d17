"""Spend by a key's tags: read from the attempts themselves, for no sum is kept by tag.

A walk over the rows of the scope: asked for by a person, not by every look at a page. An attempt
with two tags counts under each, so groups do not add up to the total.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, String, cast, func, select

from ledger.orm.tables import Attempt, exact_sum
from ledger.queries.scope import INPUT_TOKENS, OUTPUT_TOKENS, Scope, rows, total


@dataclass(frozen=True, slots=True)
class Tagged:
    """Attempts of one tag; own ones at their provisional charge."""

    tag: str  # name=value
    attempts: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int


def tagged(connection: Connection, scope: Scope) -> list[Tagged]:
    """The dearest first."""
    text = cast(Attempt.tags, String)
    statement = scope.narrow(
        select(
            func.min(Attempt.seq),
            func.count(),
            total(INPUT_TOKENS),
            total(OUTPUT_TOKENS),
            exact_sum(func.coalesce(Attempt.cost_pusd, 0)),
        )
        .where(Attempt.tags.is_not(None))
        .group_by(text)
    )
    found = rows(connection, statement)
    firsts = [row[0] for row in found]
    query = select(Attempt.seq, Attempt.tags).where(Attempt.seq.in_(firsts))
    said: dict[int, dict[str, str] | None] = dict(rows(connection, query))
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for seq, *figures in found:
        for name, value in (said.get(seq) or {}).items():
            _add(sums[f"{name}={value}"], figures)
    groups = [Tagged(tag, *values) for tag, values in sums.items()]
    return sorted(groups, key=lambda one: (-one.cost_pusd, one.tag))


def _add(into: list[int], figures: list[Any]) -> None:
    for place, figure in enumerate(figures):
        into[place] += int(figure or 0)
