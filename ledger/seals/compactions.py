"""Balances by account and day that replace deleted postings and refusals, chained.

A compaction covers consecutive whole links of the seals, whose attempts were retired. Its lines are
added once and never changed. Its chain value binds the lines, the hash of the deleted rows, what
remains under its links, the last of these seals, and the previous compaction.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, Row, Select, select

from ledger.orm.condensings import CondensedPostingRow, CondensedRefusalRow, PostingCompactionRow
from ledger.orm.seals import RetirementRow, SealRow
from ledger.seals.seal import GENESIS
from ledger.spans import Scope

TEAMS = "expense:team:"
_encode = msgspec.msgpack.encode


@dataclass(frozen=True, slots=True)
class CompactedBalance:
    """Sum and number of the postings to one account on one UTC day."""

    account: str
    day_us: int
    lines: int
    amount_pusd: int


@dataclass(frozen=True, slots=True)
class CompactedRefusals:
    """Number of equally refused requests in one hour."""

    hour_us: int
    org_id: str
    team_id: str
    model: str
    policy: str
    reason: str
    http_status: int
    scope: str | None
    requests: int


_Line = TypeVar("_Line", CompactedBalance, CompactedRefusals)


@dataclass(frozen=True, slots=True)
class PostingCompaction:
    """One compaction. `entries` counts entries of attempts; `gone` and `left` digest leaves."""

    number: int
    first_link: int
    last_link: int
    condensed_us: int
    entries: int
    postings: int
    refusals: int
    gone: bytes
    left_rows: int
    left: bytes

    def chain(
        self,
        before: bytes,
        link: bytes,
        balances: Sequence[CompactedBalance],
        refused: Sequence[CompactedRefusals],
    ) -> bytes:
        """Return the chain value after that of the previous compaction (`GENESIS` for the first).

        `link` is the chain value of its last link.
        """
        # Encoded as text, because balances may exceed 64 bits.
        rows: list[Any] = [*balances, *refused]
        lines = [[item if item is None else str(item) for item in astuple(row)] for row in rows]
        return sha256(
            before + link + _encode(sorted(asdict(self).items())) + _encode(lines)
        ).digest()


def last(connection: Connection) -> tuple[PostingCompaction | None, bytes]:
    """Return the last compaction, and the chain value that the next one follows."""
    query = (
        select(PostingCompactionRow.__table__).order_by(PostingCompactionRow.number.desc()).limit(1)
    )
    row = connection.execute(query).one_or_none()
    return (None, GENESIS) if row is None else (_compaction_of(row), bytes(row.chain))


def condensings(connection: Connection) -> list[PostingCompaction]:
    """Return all compactions in order."""
    query = select(PostingCompactionRow.__table__).order_by(PostingCompactionRow.number)
    return [_compaction_of(row) for row in connection.execute(query).all()]


def compacted_refusals(connection: Connection, scope: Scope) -> Iterator[CompactedRefusals]:
    """Yield the scope's compacted refusals, by hours that begin in it."""
    table = CondensedRefusalRow
    query = select(*(getattr(table, field.name) for field in fields(CompactedRefusals))).where(
        table.hour_us >= scope.start_us, table.hour_us < scope.end_us
    )
    if scope.team is not None:
        query = query.where(table.team_id == scope.team)
    for row in connection.execute(query):
        yield CompactedRefusals(*row)


def teams_balances(connection: Connection) -> tuple[int, dict[str, int]]:
    """Return the number of compacted entries of attempts, and their pico-USD by team account."""
    charged = select(CondensedPostingRow.account, CondensedPostingRow.amount_pusd).where(
        CondensedPostingRow.account.like(f"{TEAMS}%")
    )
    balances: dict[str, int] = {}
    for account, pusd in connection.execute(charged):
        balances[account] = balances.get(account, 0) + pusd
    return sum(connection.execute(select(PostingCompactionRow.entries)).scalars()), balances


def condensings_hold(connection: Connection) -> Generator[tuple[str, str], None, None]:
    """Check for `verify` that compactions have no gap, balance, and are unchanged."""
    before, follows, first = GENESIS, 1, 1
    balances = _lines(connection, CondensedPostingRow, CompactedBalance)
    refused = _lines(connection, CondensedRefusalRow, CompactedRefusals)
    for row in connection.execute(_STORED).all():
        compaction = _compaction_of(row)
        name, link = f"condensing {compaction.number}", bytes(row.link or b"")
        mine = balances.pop(compaction.number, [])
        if (compaction.number, compaction.first_link) != (follows, first):
            yield name, f"{follows}, from seal {first} on, is missing before it"
        if compaction.chain(before, link, mine, refused.pop(compaction.number, [])) != bytes(
            row.chain
        ):
            yield name, "the chain is broken here: it, its lines or its seal were edited"
        if (
            sum(line.amount_pusd for line in mine)
            or sum(line.lines for line in mine) != compaction.postings
        ):
            yield name, "its balances do not add up"
        if not row.ends:
            yield name, "the attempts of its last seal are not retired"
        before, follows, first = bytes(row.chain), compaction.number + 1, compaction.last_link + 1
    for number in sorted({*balances, *refused}):
        yield f"condensing {number}", "there are lines of it, and it is missing"


_STORED = (
    select(PostingCompactionRow.__table__, SealRow.chain.label("link"), RetirementRow.ends)
    .outerjoin(SealRow, SealRow.number == PostingCompactionRow.last_link)
    .outerjoin(
        RetirementRow, (RetirementRow.number == PostingCompactionRow.last_link) & RetirementRow.ends
    )
    .order_by(PostingCompactionRow.number)
)


def _lines(connection: Connection, table: Any, line: type[_Line]) -> dict[int, list[_Line]]:
    """Return the lines of each compaction in the order in which they were added."""
    names = [field.name for field in fields(line)]
    query: Select[Any] = select(table.number, *(getattr(table, name) for name in names))
    found: dict[int, list[_Line]] = {}
    for number, *values in connection.execute(query.order_by(table.number, table.line)):
        found.setdefault(number, []).append(line(*values))
    return found


def _compaction_of(row: Row[Any]) -> PostingCompaction:
    values = {field.name: getattr(row, field.name) for field in fields(PostingCompaction)}
    return PostingCompaction(**values | {"gone": bytes(row.gone), "left": bytes(row.left)})
