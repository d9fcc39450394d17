"""The fair order of batch lines: the team with the fewest running lines first.

A team's oldest lines come first. In plain order of age, a batch of fifty thousand lines would keep
every other team waiting for a day. Each batch is queried by the index of its lines, so lines that
wait behind cost nothing.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, exists, func, select

from ledger.orm.batches import BatchLineRow, BatchRow

WAITING, RUNNING, OUT, DONE = "waiting", "running", "out", "done"


def fair_shares(places: int, in_work: Mapping[str, int]) -> dict[str, int]:
    """Return the number of places for each team, as equal as possible.

    `in_work` is what each team already has. Between equal teams, the first one in `in_work` comes
    first.
    """
    heap = [(count, place, team) for place, (team, count) in enumerate(in_work.items())]
    heapq.heapify(heap)
    given: Counter[str] = Counter()
    for _ in range(places if heap else 0):
        count, place, team = heap[0]
        heapq.heapreplace(heap, (count + 1, place, team))
        given[team] += 1
    return dict(given)


@dataclass(frozen=True, slots=True)
class ClaimFilter:
    """The waiting lines to claim.

    With `ends_by_us`, only lines whose batch ends by then, and `kept` lines, which no provider
    batch takes.
    """

    model: str
    now_us: int
    ends_by_us: int | None = None

    def conditions(self, *, whole: bool) -> list[ColumnElement[bool]]:
        """Return the SQL conditions for a batch's lines: all of them, or only `kept` ones."""
        due = BatchLineRow.next_us <= self.now_us
        if whole:
            return [BatchLineRow.state == WAITING, BatchLineRow.model == self.model, due]
        # Expressions on other columns, so that only the small index of such lines is used.
        of_model = BatchLineRow.model + "" == self.model
        return [BatchLineRow.kept & due, BatchLineRow.state + "" == WAITING, of_model]


def fair_rows(connection: Connection, wanted: ClaimFilter, limit: int) -> Iterator[Any]:
    """Yield waiting lines. The caller must claim each one before it takes the next."""
    batches: dict[str, list[tuple[str, bool]]] = {}
    for batch_id, team, ends_us in connection.execute(_with_lines(wanted)):
        whole = wanted.ends_by_us is None or ends_us <= wanted.ends_by_us
        batches.setdefault(team, []).append((batch_id, whole))
    in_work: Counter[str] = Counter()
    if len(batches) > 1:
        in_work.update({row[0]: row[1] for row in connection.execute(_in_work(wanted.model))})
    while batches and limit > 0:
        for team, places in fair_shares(
            limit, {batch: in_work[batch] for batch in batches}
        ).items():
            left = places
            while left and batches[team]:
                rows = connection.execute(_next(*batches[team][0], wanted, left)).all()
                yield from rows
                left -= len(rows)
                if left:
                    batches[team].pop(0)
            limit -= places - left
            in_work[team] += places - left
        batches = {team: some for team, some in batches.items() if some}


def open_batch_conditions(now_us: int) -> list[Any]:
    """Return the SQL conditions for a batch whose lines may run."""
    return [BatchRow.status == "in_progress", BatchRow.expires_us > now_us]


def claimed_columns() -> Select[Any]:
    """Return a SELECT of the columns of a claim."""
    columns = BatchLineRow.__table__.columns
    batch = (BatchRow.endpoint, BatchRow.key_id, BatchRow.expires_us, BatchRow.tags)
    return select(*columns, *batch).join(BatchRow, BatchRow.id == BatchLineRow.batch_id)


def _with_lines(wanted: ClaimFilter) -> Select[str, str, int]:
    """Select (batch, team, end) of batches with waiting lines, oldest first."""
    waits: ColumnElement[bool]
    here = BatchLineRow.batch_id == BatchRow.id
    waits = exists().where(here, *wanted.conditions(whole=True))
    if wanted.ends_by_us is not None:
        kept = exists().where(here, *wanted.conditions(whole=False))
        # CASE evaluates only one of the two subqueries.
        waits = case((BatchRow.expires_us <= wanted.ends_by_us, waits), else_=kept)
    query = select(BatchRow.id, BatchRow.team_id, BatchRow.expires_us)
    return query.where(*open_batch_conditions(wanted.now_us), waits).order_by(BatchRow.id)


def _in_work(model: str) -> Select[str, int]:
    return (
        select(BatchRow.team_id, func.count())
        .join(BatchLineRow, BatchLineRow.batch_id == BatchRow.id)
        .where(BatchLineRow.state == RUNNING, BatchLineRow.model == model)
        .group_by(BatchRow.team_id)
    )


def _next(batch_id: str, whole: bool, wanted: ClaimFilter, limit: int) -> Select[Any]:
    return (
        claimed_columns()
        .where(
            BatchLineRow.batch_id == batch_id,
            *wanted.conditions(whole=whole),
            *open_batch_conditions(wanted.now_us),
        )
        .order_by(BatchLineRow.number)
        .limit(limit)
        .with_for_update(skip_locked=True, of=BatchLineRow)
    )
