"""Compaction of old postings and refusals, which keeps their sums by account and day.

Only rows under links whose attempts were retired are compacted (`retire`). Rows that grow with
traffic are deleted: entries of deleted attempts, and refusals. Rows that grow only with time stay:
entries of closed hours, invoices and suspense, and those of existing attempts. Links are taken
together up to some thousand rows or the end of their day, so balances are few. Before rows are
deleted, the links are proved to be unchanged. Each step is one short transaction: call
`PostingCompactor.step` until its result has `waits_for`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from ledger.accounts import SUSPENSE
from ledger.database import in_groups, reading
from ledger.fleet.hours import hour_of
from ledger.invoices.invoice_entries import invoice_of
from ledger.orm.books import AttemptRow, PostingRow, RefusalRow
from ledger.orm.condensings import CondensedPostingRow, CondensedRefusalRow, PostingCompactionRow
from ledger.orm.fleet import HOUR_US
from ledger.orm.seals import RetirementRow, SealRow
from ledger.seals import sealed
from ledger.seals.annex import REFUSED, AnnexText, add_entries, text_of
from ledger.seals.compactions import (
    TEAMS,
    CompactedBalance,
    CompactedRefusals,
    PostingCompaction,
    last,
)
from ledger.seals.link_proof import ATTEMPTS, prove_link
from ledger.seals.seal import SealLink, SealRanges, digest
from ledger.seals.sealer import link_of
from ledger.spans import DAY_US

ROWS_AT_ONCE = {"postgresql": 20_000, "sqlite": 2_000}
LINKS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """Result of one step, or why nothing was compacted."""

    postings: int = 0
    refusals: int = 0
    waits_for: str | None = None


@dataclass(slots=True)
class _Draft:
    """A planned step: the rows to delete, by `seq`, and the balances that replace them."""

    postings: list[int]
    refusals: list[int]
    balances: list[CompactedBalance]
    refused: list[CompactedRefusals]
    entries: int


class PostingCompactor:
    def __init__(self, engine: Engine, *, rows_at_once: int | None = None) -> None:
        self._engine = engine
        self._at_once = rows_at_once or ROWS_AT_ONCE[engine.dialect.name]

    def step(self, *, before_us: int, at_us: int) -> CompactionResult:
        """Compact the next links. `waits_for` of the result says why there are none."""
        with reading(self._engine) as connection:
            before, chain = last(connection)
            since, links, waits = self._links(connection, before)
            if waits or _is_young(connection, since, links[-1][0], before_us):
                return CompactionResult(
                    waits_for=waits or f"seal {links[-1][0].number} is not old enough"
                )
            draft = _draft(connection, since, links[-1][0].to)
            entry, beside = _compaction_values(
                connection, since, [link for link, _ in links], draft
            )
        number = 1 if before is None else before.number + 1
        said = PostingCompaction(number, condensed_us=at_us, **entry)
        row = asdict(said) | {
            "chain": said.chain(chain, links[-1][1], draft.balances, draft.refused)
        }
        try:
            with self._engine.begin() as connection:
                _write(connection, row, draft)
                add_entries(connection, [beside], at_us=at_us)
        except IntegrityError:
            return CompactionResult()  # another host compacted it first
        return CompactionResult(said.postings, said.refusals)

    def _links(
        self, connection: Connection, before: PostingCompaction | None
    ) -> tuple[SealRanges, list[tuple[SealLink, bytes]], str | None]:
        """Return the next links with their chain values, and why they must wait."""
        first = 1 if before is None else before.last_link + 1
        query = (
            select(SealRow.__table__).where(SealRow.number >= first - 1).order_by(SealRow.number)
        )
        stored = [(link_of(row), bytes(row.chain))
                  for row in connection.execute(query.limit(LINKS_AT_ONCE + 1))]  # fmt: skip
        since = stored.pop(0)[0].to if first > 1 else SealRanges()
        ended = connection.execute(
            select(func.max(RetirementRow.number)).where(RetirementRow.ends)
        ).scalar()
        rows, from_to = 0, [(SealLink(0, 0, since, 0, b""), b""), *stored]
        for place, ((link, _), (two, _)) in enumerate(pairwise(from_to), 1):
            if two.number > (ended or 0):
                return since, stored, f"attempts of seal {two.number} are not retired"
            rows += two.to.postings - link.to.postings + two.to.refusals - link.to.refusals
            day_ends = place < len(stored) and _day(stored[place][0]) != _day(two)
            if rows >= self._at_once or day_ends or place == LINKS_AT_ONCE:
                return since, stored[:place], None
        return since, stored, "there is no later seal"


def _day(link: SealLink) -> int:
    return link.sealed_us // DAY_US


def _is_young(connection: Connection, since: SealRanges, link: SealLink, before_us: int) -> bool:
    latest = (
        select(func.max(PostingRow.at_us)).where(
            PostingRow.seq > since.postings, PostingRow.seq <= link.to.postings
        ),
        select(func.max(RefusalRow.refused_us)).where(
            RefusalRow.seq > since.refusals, RefusalRow.seq <= link.to.refusals
        ),
    )
    return any((connection.execute(item).scalar() or 0) >= before_us for item in latest)


def _draft(connection: Connection, since: SealRanges, to: SealRanges) -> _Draft:
    columns = (
        PostingRow.seq,
        PostingRow.entry_id,
        PostingRow.at_us,
        PostingRow.account,
        PostingRow.amount_pusd,
    )
    inside = (PostingRow.seq > since.postings, PostingRow.seq <= to.postings)
    lines = connection.execute(select(*columns).where(*inside).order_by(PostingRow.seq)).all()
    here = Counter(line.entry_id for line in lines)
    kept = _entries_to_keep(connection, here)
    balances: dict[tuple[str, int], list[int]] = {}
    charged: set[str] = set()
    gone: list[int] = []
    for line in lines:
        if line.entry_id in kept:
            continue
        gone.append(line.seq)
        balance = balances.setdefault((line.account, line.at_us // DAY_US * DAY_US), [0, 0])
        balance[0], balance[1] = balance[0] + 1, balance[1] + line.amount_pusd
        if line.account.startswith(TEAMS):
            charged.add(line.entry_id)
    refusals, refused = _condense_refusals(connection, since, to)
    return _Draft(
        gone,
        refusals,
        [CompactedBalance(*key, *balances[key]) for key in sorted(balances)],
        refused,
        len(charged),
    )


def _entries_to_keep(connection: Connection, here: Counter[str]) -> set[str]:
    """Return the entries to keep: not of a deleted attempt, or not wholly in this range."""
    kept = {
        name for name in here
        if name.endswith(SUSPENSE) or hour_of(name) is not None or invoice_of(name) is not None
    }  # fmt: skip
    ids = [name for name in here if name not in kept]
    # SQLite would give the number of a deleted last row to the next row.
    newest = select(PostingRow.entry_id).order_by(PostingRow.seq.desc()).limit(1)
    kept |= set(connection.execute(newest).scalars())
    for some in in_groups(ids):
        there = select(AttemptRow.attempt_id).where(AttemptRow.attempt_id.in_(some))
        kept.update(connection.execute(there).scalars())
        counted = select(PostingRow.entry_id, func.count()).where(PostingRow.entry_id.in_(some))
        for entry, lines in connection.execute(counted.group_by(PostingRow.entry_id)):
            if lines != here[entry]:
                kept.add(entry)
    return kept


def _condense_refusals(
    connection: Connection, since: SealRanges, to: SealRanges
) -> tuple[list[int], list[CompactedRefusals]]:
    alike = [field.name for field in fields(CompactedRefusals)][1:-1]
    columns = [getattr(RefusalRow, name) for name in alike]
    query = select(RefusalRow.seq, RefusalRow.refused_us, *columns).where(
        RefusalRow.seq > since.refusals,
        RefusalRow.seq <= to.refusals,
        RefusalRow.seq < select(func.max(RefusalRow.seq)).scalar_subquery(),  # as with postings
    )
    gone: list[int] = []
    counted: Counter[tuple[Any, ...]] = Counter()
    for seq, refused_us, *values in connection.execute(query.order_by(RefusalRow.seq)):
        gone.append(seq)
        counted[refused_us // HOUR_US * HOUR_US, *values] += 1
    alike_and_count = ((*key, count) for key, count in counted.items())
    return gone, [CompactedRefusals(*pair) for pair in sorted(alike_and_count, key=repr)]


def _compaction_values(
    connection: Connection, since: SealRanges, links: Sequence[SealLink], draft: _Draft
) -> tuple[dict[str, Any], AnnexText]:
    """Return the rest of a `PostingCompaction`, and the annex entry of the remaining refusals.

    Raises `SealMismatch` if a link's rows were edited.
    """
    postings, refusals = set(draft.postings), set(draft.refusals)
    gone: list[bytes] = []
    left: list[bytes] = []
    beside: list[bytes] = []
    for link in links:
        leaves, _ = prove_link(connection, since, link)
        for row in leaves:
            going = (row.kind == sealed.postings.__name__ and row.seq in postings) or (
                row.kind == sealed.refusals.__name__ and row.seq in refusals
            )
            (gone if going else left).append(row.leaf)
            if not going and row.beside is not None and row.kind != ATTEMPTS:
                beside.append(row.beside)
        since = link.to
    first, last_link = links[0].number, links[-1].number
    return {
        "first_link": first, "last_link": last_link,
        "entries": draft.entries, "postings": len(postings), "refusals": len(refusals),
        "gone": digest(gone), "left_rows": len(left), "left": digest(left),
    }, text_of(REFUSED, f"{first}-{last_link}", beside)  # fmt: skip


def _write(connection: Connection, row: dict[str, object], draft: _Draft) -> None:
    connection.execute(insert(PostingCompactionRow), [row])
    tables: tuple[tuple[Any, Sequence[CompactedBalance | CompactedRefusals]], ...] = (
        (CondensedPostingRow, draft.balances),
        (CondensedRefusalRow, draft.refused),
    )
    for table, lines in tables:
        rows = [asdict(line) | {"number": row["number"], "line": place}
                for place, line in enumerate(lines)]  # fmt: skip
        if rows:
            connection.execute(insert(table), rows)
    deleted: tuple[tuple[Any, list[int]], ...] = (
        (PostingRow, draft.postings),
        (RefusalRow, draft.refusals),
    )
    for table, seqs in deleted:
        for some in in_groups(seqs):
            connection.execute(delete(table).where(table.seq.in_(some)))
