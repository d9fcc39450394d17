"""The heads of all chains as one word, which somebody notes elsewhere: `ledger seal`.

NUMBER:HASH of the seals, of the log of changes and of the annex; of a chain that has begun none
before it is left out.
"""

from typing import Any

from sqlalchemy import Connection, select

from ledger.orm.tables import RegisterEntryRow, SealAnnexRow, SealRow
from ledger.seals.annex import annex_head
from ledger.seals.audit_log import register_head
from ledger.seals.sealer import head

_CHAINS = (SealRow, RegisterEntryRow, SealAnnexRow)
Heads = tuple[tuple[int, bytes], ...]


def book_heads(connection: Connection) -> tuple[int, str]:
    """Return when the last link was sealed, and the word."""
    link, chain = head(connection)
    heads = [(link.number, chain), register_head(connection), annex_head(connection)]
    while len(heads) > 1 and not heads[-1][0]:
        heads.pop()
    return link.sealed_us, ":".join(f"{number}:{value.hex()}" for number, value in heads)


def parse_heads(word: str) -> Heads:
    """Return the heads of a word; raises `ValueError`."""
    parts = word.split(":")
    numbers, chains = map(int, parts[::2]), map(bytes.fromhex, parts[1::2])
    return tuple(zip(numbers, chains, strict=True))


def heads_are_there(connection: Connection, noted: Heads) -> bool:
    """Whether each chain holds what somebody noted: what led to it is still all there."""
    begun = [(table, *pair) for table, pair in zip(_CHAINS, noted, strict=False) if pair[0]]
    return all(entry_is_there(connection, *pair) for pair in begun)


def entry_is_there(connection: Connection, table: Any, number: int, chain: bytes) -> bool:
    """Whether a chain holds an entry that somebody noted: what led to it is still all there."""
    stored = connection.execute(select(table.chain).where(table.number == number))
    found = stored.scalar_one_or_none()
    return found is not None and bytes(found) == chain
