"""Retires old attempts, link by link: what they add up to stays, with a hash of what went.

    retirer = Retirer(engine)
    while retirer.step(before_us=..., at_us=...):
        pass

Roll-ups, postings and seals outlive the rows; holds go with them, into sums by window. A link's
attempts go once all of them were opened and settled before the limit, are added up, and no invoice
that may still be posted needs them; a link that must wait makes all after it wait, so what is there
is there without holes. What was ever lost stays for good: evidence may come, and seals name it
singly. Before anything goes the link is proved to be what was sealed. A step is one short
transaction that deletes rows nobody changes any more, so it stops no writer on PostgreSQL; on
SQLite it is small, for there it does.
"""

from collections.abc import Iterable, Sequence
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
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from ledger.database import reading
from ledger.journals.records import HoldState
from ledger.orm.books import Attempt, AttemptDecision, ComparedCost
from ledger.orm.budgets import HoldRow
from ledger.orm.condensings import RetiredHolds
from ledger.orm.fleet import HOUR_US
from ledger.orm.invoices import Invoice
from ledger.orm.rollups import RollupPosition, RollupWaiting
from ledger.orm.seals import RetiredUse, Retirement, Seal, SealMark
from ledger.orm.types import exact_sum
from ledger.seals import sealed
from ledger.seals.retirements import Part, Retired, last
from ledger.seals.seal import Link, Ranges, digest
from ledger.seals.sealer import link_of
from ledger.spans import DAY_US, INPUT_TOKENS, OUTPUT_TOKENS
from ledger.writing.rows import LOST

LEAST_DAYS = 35  # a budget's window is a month at most, and is counted anew from its attempts
ROWS_AT_ONCE = {"postgresql": 10_000, "sqlite": 500}
NAMED_AT_ONCE = 500
EPOCH = "1970-01-01"
ATTEMPTS = Attempt.__tablename__
LATE = "late"  # a flag: settled after it was given up for lost


class NotAsSealed(Exception):
    """A link covers something else than was sealed: nothing of it goes."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step retired, or why it did not; `attempts` may be 0 where a link had none."""

    number: int
    attempts: int
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a run would retire: links in full, attempts about, and what stops it then."""

    links: int
    attempts: int
    until_us: int
    waits_for: str


@dataclass(frozen=True, slots=True)
class Member:
    """An attempt whose final leaf lies under the link."""

    seq: int
    leaf: bytes


class Retirer:
    def __init__(self, engine: Engine, *, rows_at_once: int | None = None) -> None:
        self._engine = engine
        self._at_once = rows_at_once or ROWS_AT_ONCE[engine.dialect.name]

    def step(self, *, before_us: int, at_us: int) -> Step:
        """Retire the next part; `waits_for` says why there is none."""
        with reading(self._engine) as connection:
            number, part_number = _next(connection)
            found = _link(connection, number)
            waits = (
                "there is no later seal" if found is None else _waits(connection, *found, before_us)
            )
            if found is None or waits:
                return Step(number, 0, waits)
            since, link = found
            part, gone = self._part(connection, since, link, part_number, at_us)
        try:
            with self._engine.begin() as connection:
                before = last(connection)[1]
                chain = connection.execute(select(Seal.chain).where(Seal.number == number))
                row = part.row() | {"chain": part.chain(before, bytes(chain.scalar_one()))}
                connection.execute(insert(Retirement), [row])
                _delete(connection, gone)
        except IntegrityError:
            return Step(number, 0)  # another host retired it meanwhile
        return Step(number, part.sums.attempts)

    def _part(
        self, connection: Connection, since: Ranges, link: Link, number: int, at_us: int
    ) -> tuple[Part, list[int]]:
        leaves, members = proved(connection, since, link)
        may = _droppable(connection, [one.seq for one in members])
        gone = [one for one in members if one.seq in may]
        ends, gone = len(gone) <= self._at_once, gone[: self._at_once]
        dropped = {one.seq for one in gone}
        left = [leaf for kind, seq, leaf in leaves if kind != ATTEMPTS or seq not in dropped]
        part = Part(
            link.number,
            number,
            ends,
            at_us,
            _sums(connection, [one.seq for one in gone]),
            digest(one.leaf for one in gone),
            len(left),
            digest(left),
        )
        return part, [one.seq for one in gone]


def prospect(connection: Connection, *, before_us: int) -> Prospect:
    """Without doing anything."""
    number, _ = _next(connection)
    links = attempts = until_us = 0
    while True:
        found = _link(connection, number)
        waits = "there is no later seal" if found is None else _waits(connection, *found, before_us)
        if found is None or waits:
            return Prospect(links, attempts, until_us, waits or "")
        since, link = found
        here = (Attempt.seq > since.attempts, Attempt.seq <= link.to.attempts)
        count, latest = connection.execute(
            select(func.count(), func.max(Attempt.opened_us)).where(*here)
        ).one()
        links, attempts = links + 1, attempts + count
        until_us, number = max(until_us, latest or 0), number + 1


def _next(connection: Connection) -> tuple[int, int]:
    """Link and part that come next."""
    before, _ = last(connection)
    if before is None:
        return 1, 0
    return (before.number + 1, 0) if before.ends else (before.number, before.part + 1)


def _link(connection: Connection, number: int) -> tuple[Ranges, Link] | None:
    """A link, and up to where the one before it went."""
    query = select(Seal.__table__).where(Seal.number.in_((number - 1, number)))
    links = [link_of(row) for row in connection.execute(query.order_by(Seal.number))]
    if not links or links[-1].number != number:
        return None
    return (links[0].to if len(links) > 1 else Ranges()), links[-1]


def _waits(connection: Connection, since: Ranges, link: Link, before_us: int) -> str | None:
    """Why a link's attempts must stay for now."""
    rolled = connection.execute(select(RollupPosition.seq)).scalar() or 0
    if link.to.attempts > rolled:
        return f"seal {link.number} is not added up"
    mine = or_(
        and_(Attempt.seq > since.attempts, Attempt.seq <= link.to.attempts),
        Attempt.seq.in_(select(SealMark.attempt_seq).where(SealMark.sealed_in == link.number)),
    )
    done = and_(mine, Attempt.settled_us.is_not(None), Attempt.status != LOST)
    young = or_(Attempt.opened_us >= before_us, Attempt.settled_us >= before_us)
    if connection.execute(select(exists().where(done, young))).scalar():
        return f"seal {link.number} has attempts that are not old enough"
    provider = connection.execute(
        select(Attempt.provider).where(done, _unreconciled(connection)).limit(1)
    ).scalar()
    if provider is not None:
        return f"seal {link.number} has a day of {provider} for which no invoice is posted"
    return None


def _unreconciled(connection: Connection) -> Any:
    """Whose provider sends invoices, on a day that none of those that were posted covers."""
    party = "provider:" + Attempt.provider
    sends = exists().where(Invoice.party == party)
    day: Any = Attempt.settled_us.op("/")(DAY_US)
    if connection.dialect.name == "postgresql":
        first, until = (extract("epoch", one) / 86_400 for one in _DAYS)
    else:
        first, until = (func.julianday(one) - func.julianday(EPOCH) for one in _DAYS)
    covered = exists().where(
        Invoice.party == party,
        Invoice.posted_us.is_not(None),
        cast(first, Integer) <= day,
        cast(until, Integer) >= day,
    )
    return and_(Attempt.provider.is_not(None), sends, ~covered)


_DAYS = (Invoice.first_day, Invoice.last_day)


def proved(
    connection: Connection, since: Ranges, link: Link
) -> tuple[list[tuple[str, int, bytes]], list[Member]]:
    """All leaves under a link, with table and number, and the attempts that may go.

    `NotAsSealed` where they are not those that were sealed, less what was retired.
    """
    resolved = list(
        connection.execute(
            select(SealMark.attempt_seq)
            .where(SealMark.sealed_in == link.number)
            .distinct()
            .order_by(SealMark.attempt_seq)
        ).scalars()
    )
    rows = [
        one
        for some in _groups(resolved)
        for one in sealed.attempts(connection, 0, since.attempts, some)
    ]
    rows += sealed.attempts(connection, since.attempts, link.to.attempts)
    marks = _marks(connection, [one.seq for one in rows])
    leaves: list[tuple[str, int, bytes]] = []
    members: list[Member] = []
    for one in rows:
        mine = marks.get(one.seq, {})
        leaf = mine.get(link.number, one.leaf)
        if leaf is not None:
            leaves.append((ATTEMPTS, one.seq, leaf))
        if leaf is not None and not any(kept is not None for kept in mine.values()):
            members.append(Member(one.seq, leaf))
    to = link.to
    for read, *part in (
        (sealed.postings, since.postings, to.postings),
        (sealed.refusals, since.refusals, to.refusals),
        (sealed.prices, since.prices, to.prices),
    ):
        leaves += [(read.__name__, seq, leaf) for seq, leaf in read(connection, *part)]
    rows_now, digest_now = len(leaves), digest(leaf for _, _, leaf in leaves)
    query = select(Retirement.left_rows, Retirement.left).where(Retirement.number == link.number)
    before = connection.execute(query.order_by(Retirement.part.desc()).limit(1)).one_or_none()
    wanted = (link.rows, link.digest) if before is None else (before[0], bytes(before[1]))
    if (rows_now, digest_now) != wanted:
        raise NotAsSealed(f"seal {link.number}: `breakeven ledger verify` says what was edited")
    return leaves, members


def _marks(connection: Connection, seqs: Sequence[int]) -> dict[int, dict[int, bytes | None]]:
    found: dict[int, dict[int, bytes | None]] = {}
    for some in _groups(seqs):
        query = select(SealMark.attempt_seq, SealMark.number, SealMark.digest)
        for seq, number, kept in connection.execute(query.where(SealMark.attempt_seq.in_(some))):
            found.setdefault(seq, {})[number] = None if kept is None else bytes(kept)
    return found


def _droppable(connection: Connection, seqs: Sequence[int]) -> set[int]:
    """Of these attempts, those that no record changes any more and nothing else waits for."""
    found: set[int] = set()
    for some in _groups(seqs):
        query = select(Attempt.seq).where(
            Attempt.seq.in_(some),
            # SQLite would give the number of a last row that is gone to the next one.
            Attempt.seq < select(func.max(Attempt.seq)).scalar_subquery(),
            Attempt.settled_us.is_not(None),
            Attempt.status != LOST,
            func.coalesce(Attempt.flag, "").not_in((LOST, LATE)),
            ~exists().where(RollupWaiting.attempt_seq == Attempt.seq),
            # Never so in books that hold; were it, `verify` is to see it.
            ~exists().where(
                HoldRow.attempt_id == Attempt.attempt_id, HoldRow.state == HoldState.HELD.value
            ),
        )
        found.update(connection.execute(query).scalars())
    return found


def _sums(connection: Connection, seqs: Sequence[int]) -> Retired:
    sums = [0] * 7
    for some in _groups(seqs):
        row = connection.execute(
            select(
                func.max(Attempt.opened_us) + 1,
                func.count(),
                func.sum(case((func.coalesce(Attempt.cost_pusd, 0) != 0, 1), else_=0)),
                exact_sum(INPUT_TOKENS),
                exact_sum(OUTPUT_TOKENS),
                exact_sum(func.coalesce(Attempt.engine_us, 0)),
                exact_sum(func.coalesce(Attempt.cost_pusd, 0)),
            ).where(Attempt.seq.in_(some))
        ).one()
        sums = [max(sums[0], row[0]), *(a + int(b) for a, b in zip(sums[1:], row[1:], strict=True))]
    return Retired(*sums)


def _delete(connection: Connection, seqs: Sequence[int]) -> None:
    for some in _groups(seqs):
        gone = Attempt.seq.in_(some)
        _keep_use(connection, gone)
        ids = select(Attempt.attempt_id).where(gone)
        _keep_held(connection, ids)
        connection.execute(delete(HoldRow).where(HoldRow.attempt_id.in_(ids)))
        connection.execute(delete(ComparedCost).where(ComparedCost.attempt_id.in_(ids)))
        connection.execute(delete(AttemptDecision).where(AttemptDecision.attempt_id.in_(ids)))
        connection.execute(delete(SealMark).where(SealMark.attempt_seq.in_(some)))
        connection.execute(delete(Attempt).where(gone))


def _keep_use(connection: Connection, gone: Any) -> None:
    """What closed hours counted of them: a later correction of an hour needs it."""
    hour: Any = Attempt.settled_us - Attempt.settled_us % HOUR_US
    query = (
        select(
            Attempt.pool, hour.label("hour_us"), Attempt.team_id,
            exact_sum(Attempt.engine_us), exact_sum(Attempt.cost_pusd),
        )
        .where(gone, Attempt.backend == "own", Attempt.pool.is_not(None))
        .group_by(Attempt.pool, "hour_us", Attempt.team_id)
    )  # fmt: skip
    names = ("pool", "hour_us", "team_id", "engine_us", "charged_pusd")
    rows = [dict(zip(names, row, strict=True)) for row in connection.execute(query).all()]
    if not rows:
        return
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(RetiredUse)
    more = {
        name: getattr(RetiredUse, name) + statement.excluded[name]
        for name in ("engine_us", "charged_pusd")
    }
    connection.execute(
        statement.on_conflict_do_update(index_elements=["pool", "hour_us", "team_id"], set_=more),
        rows,
    )


def _keep_held(connection: Connection, ids: Any) -> None:
    """What holds came to, by window. Parts go one at a time, so nobody else adds meanwhile."""
    query = select(
        HoldRow.budget_id, HoldRow.window, func.count(), exact_sum(HoldRow.actual_pusd)
    ).where(HoldRow.attempt_id.in_(ids))
    for row in connection.execute(query.group_by(HoldRow.budget_id, HoldRow.window)).all():
        here = and_(RetiredHolds.budget_id == row[0], RetiredHolds.window == row[1])
        stored = select(RetiredHolds.holds, RetiredHolds.actual_pusd).where(here)
        before = connection.execute(stored).one_or_none()
        values = {"holds": row[2], "actual_pusd": row[3]}
        if before is None:
            where = {"budget_id": row[0], "window": row[1]}
            connection.execute(insert(RetiredHolds), [where | values])
        else:
            more = {"holds": row[2] + before[0], "actual_pusd": row[3] + before[1]}
            connection.execute(update(RetiredHolds).where(here).values(more))


def _groups(seqs: Sequence[int]) -> Iterable[Sequence[int]]:
    return (seqs[at : at + NAMED_AT_ONCE] for at in range(0, len(seqs), NAMED_AT_ONCE))
