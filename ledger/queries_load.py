"""What was asked of a pool, minute by minute: from the hours that are packed, and rows beside them.

A month of minutes for everyone and each team would be as many rows as attempts; packed by hour
they are some hundred.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, Connection, or_, select

from ledger.orm import Attempt, RollupLoad, RollupLoadHour
from ledger.queries_rollups import Rolled, inside, live, parts_of, settle_on
from ledger.queries_scope import HOUR_US, MINUTE_US, Scope, of_kinds, rows, spilled
from ledger.rollup import loads_of_rows, unpack


@dataclass(frozen=True, slots=True)
class Minute:
    """What was asked of a pool in one minute: served inside the SLO, spilled for lack of room.

    `asked` is all that own engines answered and what spilled.
    """

    start_us: int
    asked_tokens: int
    asked_output_tokens: int
    served_tokens: int
    served_output_tokens: int
    spilled_tokens: int
    spilled_output_tokens: int
    spilled_requests: int


@dataclass(frozen=True, slots=True)
class _Asked:
    pool: str
    spills: frozenset[str]
    kinds: Collection[str] | None


def load_per_minute(
    connection: Connection,
    scope: Scope,
    *,
    pool: str,
    spills: Collection[str],
    kinds: Collection[str] | None = None,
) -> list[Minute]:
    """Tokens asked of a pool, by minute; `spills` are the models whose overflow is this pool's.

    Of these `kinds` only (`None`: of all): a document that is ranked is no prompt of a chat.
    """
    asked = _Asked(pool, frozenset(spills), kinds)
    return settle_on(connection, partial(_load, connection, scope, asked))


def _load(connection: Connection, scope: Scope, asked: _Asked, here: Rolled | None) -> list[Minute]:
    found: dict[int, list[int]] = defaultdict(lambda: [0] * 7)
    parts = parts_of(scope, here, HOUR_US)
    if here is None or parts is None:
        _add_rows(connection, scope, asked, found, inside(Attempt.opened_us, (
            (scope.start_us, scope.end_us),
        )))  # fmt: skip
    else:
        _add_hours(connection, scope, asked, found, parts.whole)
        for rest in live(parts, here):
            _add_rows(connection, scope, asked, found, rest)
    return [Minute(start, *found[start]) for start in sorted(found)]


def _add_rows(
    connection: Connection,
    scope: Scope,
    asked: _Asked,
    found: dict[int, list[int]],
    which: ColumnElement[bool],
) -> None:
    query = loads_of_rows().where(
        which,
        or_(Attempt.pool == asked.pool, spilled(Attempt, asked.spills)),
        of_kinds(Attempt, asked.kinds),
    )
    for minute_us, _, pool, model, _, *load in rows(connection, scope.narrow(query)):
        _add(found[minute_us], asked, pool, model, load)


def _add_hours(
    connection: Connection,
    scope: Scope,
    asked: _Asked,
    found: dict[int, list[int]],
    spans: tuple[tuple[int, int], ...],
) -> None:
    query = (
        select(RollupLoad.pool, RollupLoad.model, RollupLoadHour.start_us, RollupLoadHour.minutes)
        .join(RollupLoadHour, RollupLoadHour.cell_id == RollupLoad.id)
        .where(
            RollupLoad.team_id.is_(None)
            if scope.team is None
            else RollupLoad.team_id == scope.team,
            or_(RollupLoad.pool == asked.pool, RollupLoad.model.in_(sorted(asked.spills))),
            of_kinds(RollupLoad, asked.kinds),
            inside(RollupLoadHour.start_us, spans),
        )
    )
    for pool, model, start_us, packed in rows(connection, query):
        for minute, load in unpack(packed):
            _add(found[start_us + minute * MINUTE_US], asked, pool, model, load)


def _add(
    sums: list[int], asked: _Asked, pool: str | None, model: str | None, load: Collection[int]
) -> None:
    """As `Minute` has them: asked, served, spilled."""
    tokens, output, good_tokens, good_output, requests = load
    sums[0] += tokens
    sums[1] += output
    if pool == asked.pool:
        sums[2] += good_tokens
        sums[3] += good_output
    if model in asked.spills:
        sums[4] += tokens
        sums[5] += output
        sums[6] += requests
