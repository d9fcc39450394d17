"""The proof, before rows under a link are deleted, that they are what was sealed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ledger.database import in_groups
from ledger.orm.books import AttemptRow
from ledger.orm.seals import RetirementRow, SealAnnexRow, SealMarkRow
from ledger.seals import sealed
from ledger.seals.annex import LINK
from ledger.seals.seal import SealLink, SealRanges, digest

ATTEMPTS = AttemptRow.__tablename__


class SealMismatch(Exception):
    """A link covers other rows than were sealed: none of them may be deleted."""


@dataclass(frozen=True, slots=True)
class LinkMember:
    """An attempt whose final leaf is under the link."""

    seq: int
    leaf: bytes


@dataclass(frozen=True, slots=True)
class LinkLeaf:
    """A leaf under a link, by table and number; `wide` and `beside` as in `SealedRow`."""

    kind: str
    seq: int
    leaf: bytes
    wide: bytes
    beside: bytes | None


def prove_link(
    connection: Connection, since: SealRanges, link: SealLink
) -> tuple[list[LinkLeaf], list[LinkMember]]:
    """Return all leaves under a link, and its attempts that may be deleted.

    Raises `SealMismatch` if the leaves differ from the sealed ones without the retired ones.
    """
    resolved = list(
        connection.execute(
            select(SealMarkRow.attempt_seq)
            .where(SealMarkRow.sealed_in == link.number)
            .distinct()
            .order_by(SealMarkRow.attempt_seq)
        ).scalars()
    )
    rows = [
        attempt
        for some in in_groups(resolved)
        for attempt in sealed.attempts(connection, 0, since.attempts, some, beside=True)
    ]
    rows += sealed.attempts(connection, since.attempts, link.to.attempts, beside=True)
    marks = _marks(connection, [row.seq for row in rows])
    leaves: list[LinkLeaf] = []
    members: list[LinkMember] = []
    for row in rows:
        mine = marks.get(row.seq, {})
        leaf = mine.get(link.number, row.leaf)
        if leaf is not None:
            wide = leaf if link.number in mine else row.wide or leaf
            beside = None if link.number in mine else row.beside
            leaves.append(LinkLeaf(ATTEMPTS, row.seq, leaf, wide, beside))
        if leaf is not None and not any(kept is not None for kept in mine.values()):
            members.append(LinkMember(row.seq, leaf))
    to = link.to
    for read, *part in (
        (sealed.postings, since.postings, to.postings),
        (sealed.refusals, since.refusals, to.refusals),
        (sealed.prices, since.prices, to.prices),
    ):
        leaves += [
            LinkLeaf(read.__name__, row.seq, row.leaf, row.wide, row.beside)
            for row in read(connection, *part)
        ]
    query = select(RetirementRow.left_rows, RetirementRow.left).where(
        RetirementRow.number == link.number
    )
    before = connection.execute(query.order_by(RetirementRow.part.desc()).limit(1)).one_or_none()
    wanted = (link.rows, link.digest) if before is None else (before[0], bytes(before[1]))
    digests = digest(row.leaf for row in leaves), digest(row.wide for row in leaves)
    if len(leaves) != wanted[0] or wanted[1] not in digests:
        raise SealMismatch(f"seal {link.number}: `breakeven ledger verify` says what was edited")
    return leaves, members


def _marks(connection: Connection, seqs: Sequence[int]) -> dict[int, dict[int, bytes | None]]:
    found: dict[int, dict[int, bytes | None]] = {}
    for some in in_groups(seqs):
        query = select(SealMarkRow.attempt_seq, SealMarkRow.number, SealMarkRow.digest)
        for seq, number, kept in connection.execute(query.where(SealMarkRow.attempt_seq.in_(some))):
            found.setdefault(seq, {})[number] = None if kept is None else bytes(kept)
    return found


def beside_of(leaves: Iterable[LinkLeaf], kind: str) -> list[bytes]:
    """Return the annex leaves of one table's rows."""
    return [row.beside for row in leaves if row.kind == kind and row.beside is not None]


def prove_beside(
    connection: Connection, number: int, part: int, leaves: Iterable[LinkLeaf]
) -> None:
    """Raise `SealMismatch` if the annex has other data of a link's attempts.

    `part` is the next part of its retirement. The annex does not know what a host without an annex
    retired.
    """
    subject = f"{number}.{part - 1}" if part else str(number)
    query = select(SealAnnexRow.rows, SealAnnexRow.digest).where(
        SealAnnexRow.kind == LINK, SealAnnexRow.subject == subject
    )
    entered = connection.execute(query).first()
    beside = beside_of(leaves, ATTEMPTS)
    if entered is not None and (entered[0], bytes(entered[1])) != (len(beside), digest(beside)):
        raise SealMismatch(f"seal {number}: `breakeven ledger verify` says what was edited")
