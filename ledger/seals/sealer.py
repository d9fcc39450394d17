"""The sealer: chains new rows of the ledger some seconds after their commit.

    while Sealer(engine).seal(at_us=...):
        pass

Each link covers what was added since the last: settled attempts, postings, refusals, prices. An
open attempt is marked, and sealed by the link that finds it settled. A lost attempt is sealed as
lost, and again when evidence arrives. Any host may seal. Two hosts that seal at once want the same
number, and one of them gives up.
"""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError, OperationalError

from ledger.database import in_groups, reading
from ledger.orm.books import LOST, AttemptRow, PostingRow, PriceVersionRow, RefusalRow
from ledger.orm.seals import SealMarkRow, SealRow
from ledger.seals import sealed
from ledger.seals.annex import add_link
from ledger.seals.seal import GENESIS, SealLink, SealRanges, digest

ROWS_AT_ONCE = 2_500  # of each table in one link: 7 MiB, and how long a state is kept open
LOCK_TIMEOUT_MS = 100  # writers that come later wait behind us for as long


@dataclass(slots=True)
class _Draft:
    """A planned link: its leaves in order, and its marks of single attempts."""

    number: int
    leaves: list[bytes] = field(default_factory=list)
    marks: list[dict[str, object]] = field(default_factory=list)
    resolved: list[int] = field(default_factory=list)  # attempts whose older marks end here
    beside: list[bytes] = field(default_factory=list)  # annex leaves of attempts
    refused: list[bytes] = field(default_factory=list)  # and of refusals

    def attempt(self, sealed_attempt: sealed.SealedAttempt) -> None:
        if sealed_attempt.leaf is not None:
            self.leaves.append(sealed_attempt.leaf)
            if sealed_attempt.beside is not None and not sealed_attempt.lost:
                self.beside.append(sealed_attempt.beside)
        if sealed_attempt.leaf is None or sealed_attempt.lost:
            mark = {
                "attempt_seq": sealed_attempt.seq,
                "digest": sealed_attempt.leaf,
                "sealed_in": None,
            }
            self.marks.append({"number": self.number, **mark})


class Sealer:
    def __init__(self, engine: Engine, *, rows_at_once: int = ROWS_AT_ONCE) -> None:
        self._engine = engine
        self._at_once = rows_at_once

    def seal(self, *, at_us: int) -> int:
        """Add a link for new rows. Return the number of rows under it, 0 without new rows."""
        try:
            most = self._settled_ranges()
            if most is None:
                return 0
            with reading(self._engine) as connection:
                last, chain = head(connection)
                draft, to = self._draft(connection, last, most)
            if not draft.leaves and to == last.to:
                return 0
            link = SealLink(last.number + 1, at_us, to, len(draft.leaves), digest(draft.leaves))
            with self._engine.begin() as connection:
                _write(connection, link, link.chain(chain), draft)
                add_link(connection, link.number, draft.beside, draft.refused, at_us=at_us)
        except IntegrityError:
            return 0  # another host sealed first
        return max(1, len(draft.leaves))

    def _settled_ranges(self) -> SealRanges | None:
        """Return the numbers up to which no row can still appear; `None` if writers hold the lock.

        PostgreSQL assigns numbers before commit: without the lock, a smaller number could become
        visible after a larger one was sealed.
        """
        if self._engine.dialect.name != "postgresql":
            with reading(self._engine) as connection:
                return _newest_ranges(connection)
        try:
            with self._engine.begin() as connection:
                connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"))
                connection.execute(
                    text("LOCK TABLE attempts, postings, refusals, price_versions IN SHARE MODE")
                )
                return _newest_ranges(connection)
        except OperationalError as error:
            if "lock timeout" in str(error.orig):
                return None
            raise

    def _draft(
        self, connection: Connection, last: SealLink, most: SealRanges
    ) -> tuple[_Draft, SealRanges]:
        since, to = last.to, sealed.before(last.to, most, self._at_once)
        draft = _Draft(last.number + 1)
        waiting = _waiting_attempts(connection, since.attempts)
        if to == since and not waiting:  # idle ledger
            return draft, to
        for some in in_groups(waiting):
            for attempt in sealed.attempts(connection, 0, since.attempts, some, beside=True):
                draft.attempt(attempt)
                draft.resolved.append(attempt.seq)
        for attempt in sealed.attempts(connection, since.attempts, to.attempts, beside=True):
            draft.attempt(attempt)
        for rows in (
            sealed.postings(connection, since.postings, to.postings),
            sealed.refusals(connection, since.refusals, to.refusals),
            sealed.prices(connection, since.prices, to.prices),
        ):
            for row in rows:
                draft.leaves.append(row.leaf)
                if row.beside is not None:
                    draft.refused.append(row.beside)
        return draft, to


def link_of(row: Row[Any]) -> SealLink:
    """Return a link from its stored row."""
    to = SealRanges(row.attempts_to, row.postings_to, row.refusals_to, row.prices_to)
    return SealLink(row.number, row.sealed_us, to, row.rows, bytes(row.digest))


def head(connection: Connection) -> tuple[SealLink, bytes]:
    """Return the last link and its chain value; number 0 and `GENESIS` if nothing is sealed."""
    query = select(SealRow.__table__).order_by(SealRow.number.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None:
        return SealLink(0, 0, SealRanges(), 0, b""), GENESIS
    return link_of(row), bytes(row.chain)


def _newest_ranges(connection: Connection) -> SealRanges:
    columns = (AttemptRow.seq, PostingRow.seq, RefusalRow.seq, PriceVersionRow.version)
    newest = [select(func.max(column)).scalar_subquery() for column in columns]
    return SealRanges(*(last or 0 for last in connection.execute(select(*newest)).one()))


def _waiting_attempts(connection: Connection, until: int) -> list[int]:
    """Return marked attempts that have settled since, and lost ones that have evidence now."""
    query = (
        select(AttemptRow.seq)
        .join(SealMarkRow, SealMarkRow.attempt_seq == AttemptRow.seq)
        .where(
            SealMarkRow.sealed_in.is_(None),
            AttemptRow.seq <= until,
            AttemptRow.settled_us.is_not(None),
            SealMarkRow.digest.is_(None) | (AttemptRow.status != LOST),
        )
        .order_by(AttemptRow.seq)
    )
    return list(connection.execute(query).scalars())


def _write(connection: Connection, link: SealLink, chain: bytes, draft: _Draft) -> None:
    connection.execute(insert(SealRow), [_row(link, chain)])
    for some in in_groups(draft.resolved):
        connection.execute(
            update(SealMarkRow)
            .where(SealMarkRow.attempt_seq.in_(some), SealMarkRow.sealed_in.is_(None))
            .values(sealed_in=link.number)
        )
    if draft.marks:
        connection.execute(insert(SealMarkRow), draft.marks)


def _row(link: SealLink, chain: bytes) -> dict[str, object]:
    to = link.to
    return {
        "number": link.number,
        "sealed_us": link.sealed_us,
        "attempts_to": to.attempts,
        "postings_to": to.postings,
        "refusals_to": to.refusals,
        "prices_to": to.prices,
        "rows": link.rows,
        "digest": link.digest,
        "chain": chain,
    }
