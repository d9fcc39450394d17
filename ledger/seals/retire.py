"""Retirement of old attempts, link by link: their sums stay, with a hash of deleted rows.

Roll-ups, postings and seals outlive the rows. Holds are deleted with them and kept as sums by
window, booked amounts as sums by day (`retired_bookings`). Attempts of a link are deleted once all
were opened and settled before the limit, are added up, and are not needed by an invoice that may
still be posted. A link that waits blocks all later links, so there are no gaps. Attempts that were
ever lost stay: evidence may arrive, and seals name them singly. The link is proved to be unchanged
first. A step (`AttemptRetirer.step`) is one short transaction of final rows, so it blocks no writer
on PostgreSQL; on SQLite it does, and is kept small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Integer,
    and_,
    case,
    cast,
    delete,
    exists,
    extract,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from ledger.budgets.open_claims import serialize_claims, stop_counting
from ledger.database import in_groups, reading
from ledger.invoices.bookings import RetiredBooking
from ledger.journals.records import HoldState
from ledger.orm.books import (
    LOST,
    AttemptDecisionRow,
    AttemptLegRow,
    AttemptRow,
    ClaimRow,
    ComparedCostRow,
)
from ledger.orm.budgets import HoldRow
from ledger.orm.condensings import RetiredHoldsRow
from ledger.orm.fleet import HOUR_US
from ledger.orm.invoices import InvoiceRow
from ledger.orm.rollups import RollupPositionRow, RollupWaitingRow
from ledger.orm.seals import RetiredUseRow, RetirementRow, SealMarkRow, SealRow
from ledger.orm.types import exact_sum
from ledger.seals.annex import LINK, AnnexText, add_entries, text_of
from ledger.seals.link_proof import ATTEMPTS, beside_of, prove_beside, prove_link
from ledger.seals.retired_bookings import add_bookings, digest_bookings, sum_bookings
from ledger.seals.retirements import RetiredTotals, RetirementPart, last
from ledger.seals.seal import SealLink, SealRanges, digest
from ledger.seals.sealer import link_of
from ledger.spans import DAY_US, INPUT_TOKENS, OUTPUT_TOKENS
from ledger.upserts import insert_of

LEAST_DAYS = 35  # a budget's window is a month at most, and is counted anew from its attempts
ROWS_AT_ONCE = {"postgresql": 10_000, "sqlite": 500}
EPOCH = "1970-01-01"
LATE = "late"  # a flag: settled after it was given up for lost


@dataclass(frozen=True, slots=True)
class RetirementResult:
    """Result of one step, or why there was none. `attempts` is 0 for a link without attempts."""

    number: int
    attempts: int
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class RetirementPreview:
    """Preview of a run: number of whole links, number of attempts, and what stops the run."""

    links: int
    attempts: int
    until_us: int
    waits_for: str


@dataclass(frozen=True, slots=True)
class _Draft:
    """A planned part of a retirement; `beside` is the annex entry of what remains."""

    part: RetirementPart
    gone: list[int]
    bookings: list[RetiredBooking]
    beside: AnnexText


class AttemptRetirer:
    def __init__(self, engine: Engine, *, rows_at_once: int | None = None) -> None:
        self._engine = engine
        self._at_once = rows_at_once or ROWS_AT_ONCE[engine.dialect.name]

    def step(self, *, before_us: int, at_us: int) -> RetirementResult:
        """Retire the next part. `waits_for` of the result says why there is none."""
        with reading(self._engine) as connection:
            number, part_number = _next(connection)
            found = _link(connection, number)
            waits = (
                "there is no later seal" if found is None else _waits(connection, *found, before_us)
            )
            if found is None or waits:
                return RetirementResult(number, 0, waits)
            since, link = found
            draft = self._part(connection, since, link, part_number, at_us)
            part = draft.part
        try:
            with self._engine.begin() as connection:
                before = last(connection)[1]
                chain = connection.execute(select(SealRow.chain).where(SealRow.number == number))
                row = part.row() | {"chain": part.chain(before, bytes(chain.scalar_one()))}
                connection.execute(insert(RetirementRow), [row])
                add_bookings(connection, part.number, part.part, draft.bookings)
                add_entries(connection, [draft.beside], at_us=at_us)
                _delete(connection, draft.gone)
        except IntegrityError:
            return RetirementResult(number, 0)  # another host retired it first
        return RetirementResult(number, part.sums.attempts)

    def _part(
        self, connection: Connection, since: SealRanges, link: SealLink, number: int, at_us: int
    ) -> "_Draft":
        leaves, members = prove_link(connection, since, link)
        may = _droppable(connection, [member.seq for member in members])
        gone = [member for member in members if member.seq in may]
        ends, gone = len(gone) <= self._at_once, gone[: self._at_once]
        dropped = {member.seq for member in gone}
        prove_beside(connection, link.number, number, leaves)
        kept = [row for row in leaves if row.kind != ATTEMPTS or row.seq not in dropped]
        left = [row.leaf for row in kept]
        seqs = [member.seq for member in gone]
        bookings = sum_bookings(connection, in_groups(seqs))
        part = RetirementPart(
            link.number,
            number,
            ends,
            at_us,
            _sums(connection, seqs),
            digest(member.leaf for member in gone),
            len(left),
            digest(left),
            digest_bookings(enumerate(bookings)),
        )
        beside = text_of(LINK, f"{link.number}.{number}", beside_of(kept, ATTEMPTS))
        return _Draft(part, seqs, bookings, beside)


def prospect(connection: Connection, *, before_us: int) -> RetirementPreview:
    """Return what a run would delete, without deleting."""
    number, _ = _next(connection)
    links = attempts = until_us = 0
    while True:
        found = _link(connection, number)
        waits = "there is no later seal" if found is None else _waits(connection, *found, before_us)
        if found is None or waits:
            return RetirementPreview(links, attempts, until_us, waits or "")
        since, link = found
        here = (AttemptRow.seq > since.attempts, AttemptRow.seq <= link.to.attempts)
        count, latest = connection.execute(
            select(func.count(), func.max(AttemptRow.opened_us)).where(*here)
        ).one()
        links, attempts = links + 1, attempts + count
        until_us, number = max(until_us, latest or 0), number + 1


def _next(connection: Connection) -> tuple[int, int]:
    """Return the next link and part."""
    before, _ = last(connection)
    if before is None:
        return 1, 0
    return (before.number + 1, 0) if before.ends else (before.number, before.part + 1)


def _link(connection: Connection, number: int) -> tuple[SealRanges, SealLink] | None:
    """Return a link, and the end of the previous link's ranges."""
    query = select(SealRow.__table__).where(SealRow.number.in_((number - 1, number)))
    links = [link_of(row) for row in connection.execute(query.order_by(SealRow.number))]
    if not links or links[-1].number != number:
        return None
    return (links[0].to if len(links) > 1 else SealRanges()), links[-1]


def _waits(connection: Connection, since: SealRanges, link: SealLink, before_us: int) -> str | None:
    """Return why a link's attempts must stay for now, `None` if they may be deleted."""
    rolled = connection.execute(select(RollupPositionRow.seq)).scalar() or 0
    if link.to.attempts > rolled:
        return f"seal {link.number} is not added up"
    mine = or_(
        and_(AttemptRow.seq > since.attempts, AttemptRow.seq <= link.to.attempts),
        AttemptRow.seq.in_(
            select(SealMarkRow.attempt_seq).where(SealMarkRow.sealed_in == link.number)
        ),
    )
    done = and_(mine, AttemptRow.settled_us.is_not(None), AttemptRow.status != LOST)
    young = or_(AttemptRow.opened_us >= before_us, AttemptRow.settled_us >= before_us)
    if connection.execute(select(exists().where(done, young))).scalar():
        return f"seal {link.number} has attempts that are not old enough"
    provider = connection.execute(
        select(AttemptRow.provider).where(done, _unreconciled_condition(connection)).limit(1)
    ).scalar()
    if provider is not None:
        return f"seal {link.number} has a day of {provider} for which no invoice is posted"
    return None


def _unreconciled_condition(connection: Connection) -> Any:
    """Return a condition on attempts of invoicing providers on days without a posted invoice."""
    party = "provider:" + AttemptRow.provider
    sends = exists().where(InvoiceRow.party == party)
    day: Any = AttemptRow.settled_us.op("/")(DAY_US)
    if connection.dialect.name == "postgresql":
        first, until = (extract("epoch", item) / 86_400 for item in _DAYS)
    else:
        first, until = (func.julianday(item) - func.julianday(EPOCH) for item in _DAYS)
    covered = exists().where(
        InvoiceRow.party == party,
        InvoiceRow.posted_us.is_not(None),
        cast(first, Integer) <= day,
        cast(until, Integer) >= day,
    )
    return and_(AttemptRow.provider.is_not(None), sends, ~covered)


_DAYS = (InvoiceRow.first_day, InvoiceRow.last_day)


def _droppable(connection: Connection, seqs: Sequence[int]) -> set[int]:
    """Return the attempts that no record changes any more and that nothing else needs."""
    found: set[int] = set()
    for some in in_groups(seqs):
        query = select(AttemptRow.seq).where(
            AttemptRow.seq.in_(some),
            # SQLite would give the number of a deleted last row to the next row.
            AttemptRow.seq < select(func.max(AttemptRow.seq)).scalar_subquery(),
            AttemptRow.settled_us.is_not(None),
            AttemptRow.status != LOST,
            func.coalesce(AttemptRow.flag, "").not_in((LOST, LATE)),
            ~exists().where(RollupWaitingRow.attempt_seq == AttemptRow.seq),
            # Impossible in a valid ledger. If a hold is open, keep it for `verify` to report.
            ~exists().where(
                HoldRow.attempt_id == AttemptRow.attempt_id, HoldRow.state == HoldState.HELD.value
            ),
        )
        found.update(connection.execute(query).scalars())
    return found


def _sums(connection: Connection, seqs: Sequence[int]) -> RetiredTotals:
    sums = [0] * 7
    for some in in_groups(seqs):
        row = connection.execute(
            select(
                func.max(AttemptRow.opened_us) + 1,
                func.count(),
                func.sum(case((func.coalesce(AttemptRow.cost_pusd, 0) != 0, 1), else_=0)),
                exact_sum(INPUT_TOKENS),
                exact_sum(OUTPUT_TOKENS),
                exact_sum(func.coalesce(AttemptRow.engine_us, 0)),
                exact_sum(func.coalesce(AttemptRow.cost_pusd, 0)),
            ).where(AttemptRow.seq.in_(some))
        ).one()
        sums = [max(sums[0], row[0]), *(a + int(b) for a, b in zip(sums[1:], row[1:], strict=True))]
    return RetiredTotals(*sums)


def _delete(connection: Connection, seqs: Sequence[int]) -> None:
    serialize_claims(connection)
    names: list[str] = []
    for some in in_groups(seqs):
        query = select(AttemptRow.attempt_id).where(AttemptRow.seq.in_(some))
        names += connection.execute(query).scalars()
    stop_counting(connection, names)
    for some in in_groups(seqs):
        gone = AttemptRow.seq.in_(some)
        _keep_use(connection, gone)
        ids = select(AttemptRow.attempt_id).where(gone)
        _keep_held(connection, ids)
        for table in (HoldRow, ComparedCostRow, AttemptLegRow, ClaimRow, AttemptDecisionRow):
            connection.execute(delete(table).where(table.attempt_id.in_(ids)))
        connection.execute(delete(SealMarkRow).where(SealMarkRow.attempt_seq.in_(some)))
        connection.execute(delete(AttemptRow).where(gone))


def _keep_use(connection: Connection, gone: Any) -> None:
    """Store the counted use of closed hours, which a later correction needs."""
    hour: Any = AttemptRow.settled_us - AttemptRow.settled_us % HOUR_US
    query = (
        select(
            AttemptRow.pool, hour.label("hour_us"), AttemptRow.team_id,
            exact_sum(AttemptRow.engine_us), exact_sum(AttemptRow.cost_pusd),
        )
        .where(gone, AttemptRow.backend == "own", AttemptRow.pool.is_not(None))
        .group_by(AttemptRow.pool, "hour_us", AttemptRow.team_id)
    )  # fmt: skip
    names = ("pool", "hour_us", "team_id", "engine_us", "charged_pusd")
    rows = [dict(zip(names, row, strict=True)) for row in connection.execute(query).all()]
    if not rows:
        return
    on_conflict = insert_of(connection.dialect)
    statement = on_conflict(RetiredUseRow)
    more = {
        name: getattr(RetiredUseRow, name) + statement.excluded[name]
        for name in ("engine_us", "charged_pusd")
    }
    connection.execute(
        statement.on_conflict_do_update(index_elements=["pool", "hour_us", "team_id"], set_=more),
        rows,
    )


def _keep_held(connection: Connection, ids: Any) -> None:
    """Store sums of holds by window. Only one part is retired at a time, so nothing else adds."""
    query = select(
        HoldRow.budget_id, HoldRow.window, func.count(), exact_sum(HoldRow.actual_pusd)
    ).where(HoldRow.attempt_id.in_(ids))
    for row in connection.execute(query.group_by(HoldRow.budget_id, HoldRow.window)).all():
        here = and_(RetiredHoldsRow.budget_id == row[0], RetiredHoldsRow.window == row[1])
        stored = select(RetiredHoldsRow.holds, RetiredHoldsRow.actual_pusd).where(here)
        before = connection.execute(stored).one_or_none()
        values = {"holds": row[2], "actual_pusd": row[3]}
        if before is None:
            where = {"budget_id": row[0], "window": row[1]}
            connection.execute(insert(RetiredHoldsRow), [where | values])
        else:
            more = {"holds": row[2] + before[0], "actual_pusd": row[3] + before[1]}
            connection.execute(update(RetiredHoldsRow).where(here).values(more))
