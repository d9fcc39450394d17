"""The annex of the seals: a chained list of entries that prove what links leave out.

Links cover only columns that hosts of every version know; entries prove later columns. Kinds:
`link`, attempts under a link or what a part of its retirement left (`7.0`); `refused`, refusals of
a link or what a compaction left (`3-9`); `hits`, cache hits by number; `route`, a statement of
where a model may go; `hits gone`, retired hits (`retire_hits`). An unknown kind is chained but not
judged. A host that makes a link writes its entry. `SealAnnex.follow` adds entries for links of
hosts without an annex, and all others. If two hosts follow at once, one gives up.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Engine, exists, func, insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from ledger.database import in_groups, reading
from ledger.orm.books import CacheHitRow
from ledger.orm.fleet import ModelRouteRow
from ledger.orm.seals import RetirementRow, SealAnnexRow, SealMarkRow, SealRow
from ledger.seals import sealed
from ledger.seals.seal import GENESIS, SealRanges, digest, leaf

HITS_AT_ONCE = 2_500
LOCK_TIMEOUT_MS = 100
LINK, REFUSED, HITS, HITS_GONE, ROUTE = "link", "refused", "hits", "hits gone", "route"


class AnnexText(NamedTuple):
    """Content of an entry: the digest of the leaves of `rows` rows of a subject."""

    kind: str
    subject: str
    rows: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class AnnexEntry:
    """A chained entry."""

    number: int
    at_us: int
    text: AnnexText

    def chain(self, before: bytes) -> bytes:
        """Return the chain value after that of the previous entry (`GENESIS` for the first)."""
        said = msgspec.msgpack.encode((self.number, self.at_us, *self.text))
        return sha256(before + said).digest()


class SealAnnex:
    def __init__(self, engine: Engine, *, rows_at_once: int = HITS_AT_ONCE) -> None:
        self._engine = engine
        self._at_once = rows_at_once

    def follow(self, *, at_us: int) -> int:
        """Enter what is new. Return the number of entries. An idle ledger is only read."""
        with reading(self._engine) as connection:
            texts = [*_link_texts(connection), *_route_texts(connection)]
            hits = _hits_since(connection)
        with_hits = self._settled_hits(hits)
        if not texts and not with_hits:
            return 0
        try:
            with self._engine.begin() as connection:
                if with_hits:
                    texts += _hit_texts(connection, hits, with_hits, self._at_once)
                add_entries(connection, texts, at_us=at_us)
        except IntegrityError:
            return 0  # another host was first
        return len(texts)

    def _settled_hits(self, since: int) -> int:
        """Return the number up to which no hit can still appear; 0 if none is beyond `since`."""
        newest = select(func.max(CacheHitRow.seq))
        with reading(self._engine) as connection:
            last = int(connection.execute(newest).scalar() or 0)
        if last <= since or self._engine.dialect.name != "postgresql":
            return last if last > since else 0
        try:
            with self._engine.begin() as connection:
                connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"))
                connection.execute(text("LOCK TABLE cache_hits IN SHARE MODE"))
                return int(connection.execute(newest).scalar() or 0)
        except OperationalError as error:
            if "lock timeout" in str(error.orig):
                return 0
            raise


def annex_head(connection: Connection) -> tuple[int, bytes]:
    """Return the last entry's number and chain value; 0 and `GENESIS` without entries."""
    query = select(SealAnnexRow.number, SealAnnexRow.chain)
    row = connection.execute(query.order_by(SealAnnexRow.number.desc()).limit(1)).one_or_none()
    return (0, GENESIS) if row is None else (row[0], bytes(row[1]))


def add_entries(connection: Connection, texts: Iterable[AnnexText], *, at_us: int) -> int:
    """Append chained entries. Return the last number.

    Raises `IntegrityError` if another host appended first.
    """
    number, chain = annex_head(connection)
    rows = []
    for said in texts:
        number += 1
        chain = AnnexEntry(number, at_us, said).chain(chain)
        rows.append({"number": number, "at_us": at_us, "chain": chain} | said._asdict())
    if rows:
        connection.execute(insert(SealAnnexRow), rows)
    return number


def text_of(kind: str, subject: object, leaves: Sequence[bytes]) -> AnnexText:
    return AnnexText(kind, str(subject), len(leaves), digest(leaves))


def add_link(
    connection: Connection,
    number: int,
    attempts: Sequence[bytes],
    refused: Sequence[bytes],
    *,
    at_us: int,
) -> None:
    """Enter a link that is being made, unless an earlier link is not entered yet."""
    last = last_link(connection)
    if last is None or last + 1 == number:
        add_entries(connection, _texts_of_link(number, attempts, refused), at_us=at_us)


def _texts_of_link(
    number: int, attempts: Sequence[bytes], refused: Sequence[bytes]
) -> Iterator[AnnexText]:
    yield text_of(LINK, number, attempts)
    if refused:
        yield text_of(REFUSED, number, refused)


def last_link(connection: Connection) -> int | None:
    """Return the newest link that was entered."""
    query = select(SealAnnexRow.subject).where(
        SealAnnexRow.kind == LINK, ~SealAnnexRow.subject.contains(".")
    )
    last = connection.execute(query.order_by(SealAnnexRow.number.desc()).limit(1)).scalar()
    return None if last is None else int(last)


def last_subject(connection: Connection, kind: str) -> str | None:
    """Return the subject of the newest entry of a kind."""
    query = select(SealAnnexRow.subject).where(SealAnnexRow.kind == kind)
    subject: str | None = connection.execute(
        query.order_by(SealAnnexRow.number.desc()).limit(1)
    ).scalar_one_or_none()
    return subject


def entered_rows(connection: Connection, kind: str) -> dict[str, tuple[int, bytes]]:
    """Return the number of rows and their digest for each subject of a kind."""
    columns = (SealAnnexRow.subject, SealAnnexRow.rows, SealAnnexRow.digest)
    query = select(*columns).where(SealAnnexRow.kind == kind)
    return {subject: (rows, bytes(kept)) for subject, rows, kept in connection.execute(query)}


def hit_range(subject: str) -> tuple[int, int]:
    """Return the first and the last number of an entry of hits."""
    first, _, until = subject.partition("-")
    return int(first), int(until)


def route_subject(model: str, recorded_us: int) -> str:
    return f"{recorded_us} {model}"


def route_leaf(row: Any) -> bytes:
    values = [sealed.order_members(row[name]) for name in _ROUTE_NAMES]
    return digest([leaf("model_routes", _ROUTE_NAMES, values)])


def read_routes(connection: Connection) -> list[dict[str, Any]]:
    columns = ModelRouteRow.__table__.columns
    query = select(*columns).order_by(ModelRouteRow.model)
    return [dict(row) for row in connection.execute(query).mappings()]


def known_routes(connection: Connection) -> dict[str, AnnexText]:
    """Return the newest statement of each model's route."""
    columns = (getattr(SealAnnexRow, name) for name in AnnexText._fields)
    query = select(*columns).where(SealAnnexRow.kind == ROUTE).order_by(SealAnnexRow.number)
    return {row.subject.partition(" ")[2]: AnnexText(*row) for row in connection.execute(query)}


def _link_texts(connection: Connection) -> Iterator[AnnexText]:
    """Yield entries for the first links that no host entered."""
    last = last_link(connection)
    newest = connection.execute(select(func.max(SealRow.number))).scalar()
    if newest is None or (last is not None and last >= newest):
        return
    number = newest if last is None else last + 1
    columns = (SealRow.attempts_to, SealRow.postings_to, SealRow.refusals_to, SealRow.prices_to)
    here = SealRow.number.in_((number - 1, number))
    ranges = [
        SealRanges(*row)
        for row in connection.execute(select(*columns).where(here).order_by(SealRow.number))
    ]
    since = ranges[0] if len(ranges) > 1 else SealRanges()
    gone = select(exists().where(RetirementRow.number == number))
    to = ranges[-1]
    retired = connection.execute(gone).scalar()
    attempts = [] if retired else list(_leaves_of_link(connection, number, since, to))
    refusals = sealed.refusals(connection, since.refusals, to.refusals)
    refused = [row.beside for row in refusals if row.beside is not None]
    yield from _texts_of_link(number, attempts, refused)


def _leaves_of_link(
    connection: Connection, number: int, since: SealRanges, to: SealRanges
) -> Iterator[bytes]:
    """Yield the annex leaves, in order, of attempts whose final state a link seals."""
    marks = select(SealMarkRow.attempt_seq)
    resolved = list(connection.execute(marks.where(SealMarkRow.sealed_in == number)).scalars())
    open_then = set(connection.execute(marks.where(SealMarkRow.number == number)).scalars())
    some = sorted({*resolved} - open_then)
    attempts: list[sealed.SealedAttempt] = []
    for named in in_groups(some, HITS_AT_ONCE):
        attempts += sealed.attempts(connection, 0, since.attempts, named, beside=True)
    attempts += sealed.attempts(connection, since.attempts, to.attempts, beside=True)
    for attempt in attempts:
        if attempt.beside is not None and attempt.seq not in open_then:
            yield attempt.beside


def _hits_since(connection: Connection) -> int:
    last = last_subject(connection, HITS)
    return 0 if last is None else hit_range(last)[1]


def _hit_texts(connection: Connection, since: int, until: int, at_once: int) -> Iterator[AnnexText]:
    """Yield entries of the next hits, each with up to `at_once` numbers."""
    while since < until:
        to = min(until, since + at_once)
        leaves = [row.leaf for row in sealed.cache_hits(connection, since, to)]
        yield AnnexText(HITS, f"{since + 1}-{to}", len(leaves), digest(leaves))
        since = to


def _route_texts(connection: Connection) -> Iterator[AnnexText]:
    routes = read_routes(connection)
    known = known_routes(connection) if routes else {}
    for row in routes:
        subject = route_subject(row["model"], row["recorded_us"])
        before = known.get(row["model"])
        if before is None or before.subject != subject:
            yield AnnexText(ROUTE, subject, 1, route_leaf(row))


_ROUTE_NAMES = sorted(ModelRouteRow.__table__.columns.keys())
