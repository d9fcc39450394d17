"""Verification that nothing under a seal was edited, added or removed.

Links are read in groups, so a group and the attempts open at one time bound the memory. An attempt
belongs to the link whose range contains it or, if that link marks it, to the link that its mark
names. The sealed state of a lost attempt is in its mark. The same pass checks the annex, which has
what links leave out.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator

from sqlalchemy import Connection, func, select

from ledger.orm.books import AttemptRow, PostingRow, PriceVersionRow, RefusalRow
from ledger.orm.seals import RetirementRow, SealMarkRow, SealRow
from ledger.seals import sealed
from ledger.seals.annex import LINK, REFUSED, entered_rows
from ledger.seals.compactions import condensings
from ledger.seals.seal import GENESIS, SealLink, SealRanges, digest
from ledger.seals.sealer import link_of

ROWS_IN_GROUP = 10_000
Found = Generator[tuple[str, str], None, None]
_Pair = tuple[bytes, bytes]  # what is sealed of a row, and as hosts of one version sealed it
_Leaf = tuple[int, _Pair]  # by its number
_Mark = tuple[bytes | None, int | None]  # what was sealed of a lost one; the link that seals it
EDITED = "what it covers is not what was sealed"


def seals_hold(connection: Connection) -> Found:
    """Check that the rows under each link are as sealed, and that links are an unbroken chain."""
    chain, before = GENESIS, SealLink(0, 0, SealRanges(), 0, b"")
    for name, column in (
        ("attempts", AttemptRow.seq), ("postings", PostingRow.seq), ("refusals", RefusalRow.seq),
        ("price_versions", PriceVersionRow.version),
    ):  # fmt: skip
        for (item,) in connection.execute(select(column).where(column < 1)):
            yield f"{name} {item}", "a row below all that are sealed: the books number from 1"
    left, condensed = _retired_remainders(connection), _CompactedRows(connection)
    annex = _AnnexProof(connection, condensed.until)
    proof = _Proof(connection, beside=annex.has_entries)
    for group in _groups(connection):
        proof.read(before, group[-1][0])
        for link, stored in group:
            name = f"seal {link.number}"
            if link.number != before.number + 1 or link.chain(chain) != stored:
                yield name, "the chain is broken here: a link was edited or is missing"
            leaves = proof.leaves(before, link)
            wanted = left.get(link.number, (link.rows, link.digest))
            if link.number <= condensed.until:
                yield from condensed.add(link.number, leaves)
            elif not _are(leaves, wanted):
                yield name, _what(before.to, link, len(leaves), wanted[0])
            yield from annex.judge(link.number, *proof.beside(link.number))
            yield from proof.edited()
            chain, before = stored, link
    for number in sorted(proof.later):
        yield f"seal {number}", "an attempt is said to be sealed by it, but there is no such link"


def _are(leaves: list[_Pair], wanted: tuple[int, bytes]) -> bool:
    """Return whether the leaves give the digest, in either of the two ways of sealing."""
    if len(leaves) != wanted[0]:
        return False
    return digest(pair[0] for pair in leaves) == wanted[1] or (
        any(pair[0] is not pair[1] for pair in leaves)
        and digest(pair[1] for pair in leaves) == wanted[1]
    )


def _groups(connection: Connection) -> Iterator[list[tuple[SealLink, bytes]]]:
    """Yield links with their stored chain values, in groups whose rows fit in memory."""
    group: list[tuple[SealLink, bytes]] = []
    rows = 0
    query = select(SealRow.__table__).order_by(SealRow.number)
    for row in connection.execute(query, execution_options={"yield_per": ROWS_IN_GROUP}):
        link = link_of(row)
        if group and rows + link.rows > ROWS_IN_GROUP:
            yield group
            group, rows = [], 0
        group.append((link, bytes(row.chain)))
        rows += link.rows
    if group:
        yield group


def _retired_remainders(connection: Connection) -> dict[int, tuple[int, bytes]]:
    """Return what remains under links with retired attempts, by their last part."""
    query = select(RetirementRow.number, RetirementRow.left_rows, RetirementRow.left)
    found = connection.execute(query.order_by(RetirementRow.number, RetirementRow.part)).all()
    return {number: (rows, bytes(left)) for number, rows, left in found}


def _what(since: SealRanges, link: SealLink, now: int, then: int) -> str:
    to = link.to
    return (
        f"{EDITED}: {then} rows then, {now} now, among attempts {since.attempts + 1} to "
        f"{to.attempts}, postings {since.postings + 1} to {to.postings}, refusals "
        f"{since.refusals + 1} to {to.refusals}, prices {since.prices + 1} to {to.prices}, or "
        "attempts that settled late"
    )


class _CompactedRows:
    """Rows that remain under compacted links, checked for several links together."""

    def __init__(self, connection: Connection) -> None:
        self._waiting = deque(condensings(connection))
        self.until = self._waiting[-1].last_link if self._waiting else 0
        self._leaves: list[_Pair] = []

    def add(self, number: int, leaves: list[_Pair]) -> Found:
        """Add the leaves of the next link, and check them after the last link of a compaction."""
        self._leaves += leaves
        compaction = self._waiting[0]
        if number < compaction.last_link:
            return
        self._waiting.popleft()
        left, self._leaves = self._leaves, []
        if not _are(left, (compaction.left_rows, compaction.left)):
            yield (
                f"seals {compaction.first_link} to {compaction.last_link}",
                f"{EDITED}: {compaction.left_rows} rows were left then, {len(left)} now",
            )


class _AnnexProof:
    """A check of the annex against what links leave out of their rows, as far as it goes.

    The annex does not cover links that a host without an annex retired or compacted.
    """

    def __init__(self, connection: Connection, condensed_until: int) -> None:
        self._links = entered_rows(connection, LINK)
        self._refused = entered_rows(connection, REFUSED)
        self.has_entries = bool(self._links)
        query = select(RetirementRow.number, func.max(RetirementRow.part))
        parts = connection.execute(query.group_by(RetirementRow.number)).all()
        self._parts: dict[int, int] = {row[0]: row[1] for row in parts}
        self._condensed_until = condensed_until
        self._groups = {item.first_link: item.last_link for item in condensings(connection)}
        self._first, self._waiting = 0, list[bytes]()

    def judge(self, number: int, attempts: list[bytes], refused: list[bytes]) -> Found:
        part = self._parts.get(number)
        subject = str(number) if part is None else f"{number}.{part}"
        yield from _differing(subject, self._links.get(subject), attempts)
        if number > self._condensed_until:
            entered = (0, digest(())) if str(number) in self._links else None
            yield from _differing(subject, self._refused.get(str(number), entered), refused)
            return
        if number in self._groups:
            self._first, self._waiting = number, []
        self._waiting += refused
        if self._groups.get(self._first) == number:
            subject = f"{self._first}-{number}"
            yield from _differing(subject, self._refused.get(subject), self._waiting)


def _differing(subject: str, entered: tuple[int, bytes] | None, leaves: list[bytes]) -> Found:
    if entered not in (None, (len(leaves), digest(leaves))):
        words = f"{EDITED} beside it: content, legs, cached tokens or a budget's room"
        yield f"seal {subject}", words


class _Proof:
    """The leaves of each link in turn."""

    def __init__(self, connection: Connection, *, beside: bool) -> None:
        self.later: dict[int, list[_Leaf]] = defaultdict(list)  # by link
        self._beside: dict[int, list[tuple[int, bytes]]] = defaultdict(list)  # the annex's, alike
        self._refused: list[bytes] = []
        self._connection, self._reads_beside = connection, beside
        self._edited: list[tuple[str, str]] = []
        self._attempts: deque[sealed.SealedAttempt] = deque()
        self._marks: dict[int, dict[int, _Mark]] = {}
        self._plain: list[deque[sealed.SealedRow]] = []

    def read(self, before: SealLink, last: SealLink) -> None:
        """Read the rows of a group of links."""
        connection, since, to = self._connection, before.to, last.to
        self._marks = _marks_of(connection, since.attempts, to.attempts)
        self._attempts = deque(
            sealed.attempts(connection, since.attempts, to.attempts, beside=self._reads_beside)
        )
        self._plain = [
            deque(rows(connection, first, until)) for rows, first, until in _plain(since, to)
        ]

    def leaves(self, before: SealLink, link: SealLink) -> list[_Pair]:
        """Return the current leaves under one link, in the order in which they were sealed."""
        inside: list[_Pair] = []
        while self._attempts and self._attempts[0].seq <= link.to.attempts:
            attempt = self._attempts.popleft()
            marks = self._marks.pop(attempt.seq, None)
            if marks is None and attempt.leaf is not None:  # most of them
                inside.append((attempt.leaf, attempt.wide or attempt.leaf))
                if attempt.beside is not None:
                    self._beside[link.number].append((attempt.seq, attempt.beside))
                continue
            member = self._sealed_in(link.number, attempt, marks or {})
            if member is not None:
                inside.append(member)
        for seq in [seq for seq in self._marks if seq <= link.to.attempts]:
            del self._marks[seq]
            self._edited.append((f"attempt {seq}", "a seal marks it, and it is gone"))
        found = [leaf for _, leaf in sorted(self.later.pop(link.number, ()))] + inside
        for waiting, (_, _, until) in zip(self._plain, _plain(before.to, link.to), strict=True):
            while waiting and waiting[0][0] <= until:
                _, leaf, wide, beside = waiting.popleft()
                found.append((leaf, wide))
                if beside is not None:
                    self._refused.append(beside)
        return found

    def beside(self, number: int) -> tuple[list[bytes], list[bytes]]:
        """Return the annex leaves of the last requested link: attempts, refusals."""
        inside = [leaf for _, leaf in sorted(self._beside.pop(number, ()))]
        refused, self._refused = self._refused, []
        return inside, refused

    def edited(self) -> list[tuple[str, str]]:
        """Return single edited rows that were found since the last call."""
        found, self._edited = self._edited, []
        return found

    def _sealed_in(
        self, number: int, sealed_attempt: sealed.SealedAttempt, marks: dict[int, _Mark]
    ) -> _Pair | None:
        """Return an attempt's leaves in the link of its range; keep those for other links."""
        place: int | None = number
        here: _Pair | None = None
        seq, now = sealed_attempt.seq, (sealed_attempt.leaf, sealed_attempt.wide)
        while place is not None:
            kept, following = marks.get(place, (None, None))
            sealed_then = (kept, kept) if place in marks else now
            if place not in marks and sealed_attempt.leaf is None:
                self._edited.append((f"attempt {seq}", "it was sealed, and is open now"))
            if place in marks and following is None and kept not in (None, *now):
                self._edited.append((f"attempt {seq}", EDITED))
            if place not in marks and sealed_attempt.beside is not None:
                self._beside[place].append((seq, sealed_attempt.beside))
            pair = _whole(sealed_then)
            if pair is not None and place == number:
                here = pair
            elif pair is not None:
                self.later[place].append((seq, pair))
            place = following if following is None or following > place else None
        return here


def _whole(pair: tuple[bytes | None, bytes | None]) -> _Pair | None:
    leaf, wide = pair
    return None if leaf is None else (leaf, leaf if wide is None else wide)


_Reader = Callable[[Connection, int, int], Iterator[sealed.SealedRow]]


def _plain(since: SealRanges, to: SealRanges) -> tuple[tuple[_Reader, int, int], ...]:
    """Return the tables whose rows never change, in the order of a link's leaves."""
    return (
        (sealed.postings, since.postings, to.postings),
        (sealed.refusals, since.refusals, to.refusals),
        (sealed.prices, since.prices, to.prices),
    )


def _marks_of(connection: Connection, since: int, until: int) -> dict[int, dict[int, _Mark]]:
    query = select(
        SealMarkRow.attempt_seq, SealMarkRow.number, SealMarkRow.digest, SealMarkRow.sealed_in
    ).where(SealMarkRow.attempt_seq > since, SealMarkRow.attempt_seq <= until)
    found: dict[int, dict[int, _Mark]] = defaultdict(dict)
    for seq, number, kept, sealed_in in connection.execute(query):
        found[seq][number] = (None if kept is None else bytes(kept), sealed_in)
    return found
