"""Verification of the seals' annex: its chain is complete and matches the rows.

Entries about links are checked where the links' rows are read: `ledger.verify.seals`.
"""

from sqlalchemy import Connection, select

from ledger.orm.seals import SealAnnexRow, SealRow
from ledger.seals import sealed
from ledger.seals.annex import (
    HITS,
    HITS_GONE,
    LINK,
    AnnexEntry,
    AnnexText,
    hit_range,
    known_routes,
    read_routes,
    route_leaf,
    route_subject,
)
from ledger.seals.retire_hits import digest_lines, lines_by_entry
from ledger.seals.seal import GENESIS, digest
from ledger.verify.hours import Found

EDITED = "it is not what was entered"


def annexes_hold(connection: Connection) -> Found:
    """Check that the annex is an unbroken chain, and that cache hits and routes match it."""
    entries: list[AnnexEntry] = []
    yield from _chain(connection, entries)
    yield from _links(connection, entries)
    yield from _hits(connection, entries)
    yield from _lines(connection, entries)
    yield from _routes(connection)


def _chain(connection: Connection, entries: list[AnnexEntry]) -> Found:
    """Check the chain. Entries of unknown kinds are chained, but not checked otherwise."""
    chain, number = GENESIS, 0
    query = select(*SealAnnexRow.__table__.columns).order_by(SealAnnexRow.number)
    for row in connection.execute(query).mappings():
        said = AnnexText(row["kind"], row["subject"], row["rows"], bytes(row["digest"]))
        entry, number = AnnexEntry(row["number"], row["at_us"], said), number + 1
        if entry.number != number or entry.chain(chain) != bytes(row["chain"]):
            words = "the chain is broken here: an entry was edited or is missing"
            yield f"annex {entry.number}", words
        number, chain = entry.number, bytes(row["chain"])
        entries.append(entry)


def _links(connection: Connection, entries: list[AnnexEntry]) -> Found:
    """Check that the entered links are consecutive from the first one, and exist."""
    there = set(connection.execute(select(SealRow.number)).scalars())
    subjects = [entry.text.subject for entry in entries if entry.text.kind == LINK]
    links = [int(subject) for subject in subjects if "." not in subject]
    for place, number in enumerate(links):
        if number != links[0] + place or number not in there:
            yield f"annex of seal {number}", "it follows no other, or there is no such seal"


def _hits(connection: Connection, entries: list[AnnexEntry]) -> Found:
    gone = {entry.text.subject for entry in entries if entry.text.kind == HITS_GONE}
    until = 0
    texts = [entry.text for entry in entries if entry.text.kind == HITS]
    last = hit_range(texts[-1].subject)[1] if texts else 0
    rows = sealed.cache_hits(connection, -(2**62), last)
    row = next(rows, None)
    if row is not None and row.seq < 1:
        yield f"cache hit {row.seq}", "a row below all that were entered"
    for text in texts:
        first, to = hit_range(text.subject)
        if first != until + 1:
            yield f"cache hits {text.subject}", f"those from {until + 1} on are missing before"
        leaves: list[bytes] = []
        until = to
        while row is not None and row.seq <= to:
            leaves.append(row.leaf)
            row = next(rows, None)
        wanted = (0, digest(())) if text.subject in gone else (text.rows, text.digest)
        if (len(leaves), digest(leaves)) != wanted:
            words = f"{EDITED}: {wanted[0]} rows then, {len(leaves)} now"
            yield f"cache hits {text.subject}", words


def _lines(connection: Connection, entries: list[AnnexEntry]) -> Found:
    """Check that the sums of retired hits equal those entered at their retirement."""
    lines = lines_by_entry(connection)
    for entry in entries:
        if entry.text.kind != HITS_GONE:
            continue
        mine = lines.pop(entry.number, [])
        if (sum(line.hits for line in mine), digest_lines(mine)) != entry.text[2:]:
            yield f"cache hits {entry.text.subject}", "what they came to was edited"
    for number in lines:
        yield f"annex {number}", "there are sums of its cache hits, and it is missing"


def _routes(connection: Connection) -> Found:
    """Check that a route is as entered; one with another time waits for the follower."""
    known = known_routes(connection)
    for row in read_routes(connection):
        said = known.pop(row["model"], None)
        is_known = said is not None and said.subject == route_subject(
            row["model"], row["recorded_us"]
        )
        if said is not None and is_known and said.digest != route_leaf(row):
            yield f"route of {row['model']}", EDITED
    for model in sorted(known):
        yield f"route of {model}", "it was entered, and is gone"
