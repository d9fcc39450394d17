"""The heads of all chains as one text to be stored elsewhere: `ledger seal`.

The text has NUMBER:HASH of the seals, the audit log and the annex. Trailing chains without entries
are left out.
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
    """Return the time of the last seal, and the text of all heads."""
    link, chain = head(connection)
    heads = [(link.number, chain), register_head(connection), annex_head(connection)]
    while len(heads) > 1 and not heads[-1][0]:
        heads.pop()
    return link.sealed_us, ":".join(f"{number}:{value.hex()}" for number, value in heads)


def parse_heads(word: str) -> Heads:
    """Return the heads of a text. Raises `ValueError` for an invalid text."""
    parts = word.split(":")
    numbers, chains = map(int, parts[::2]), map(bytes.fromhex, parts[1::2])
    return tuple(zip(numbers, chains, strict=True))


def heads_are_there(connection: Connection, noted: Heads) -> bool:
    """Return whether each chain still holds the noted entry, and so all before it."""
    begun = [(table, *pair) for table, pair in zip(_CHAINS, noted, strict=False) if pair[0]]
    return all(entry_is_there(connection, *pair) for pair in begun)


def entry_is_there(connection: Connection, table: Any, number: int, chain: bytes) -> bool:
    """Return whether a chain still holds the noted entry, and so all before it."""
    stored = connection.execute(select(table.chain).where(table.number == number))
    found = stored.scalar_one_or_none()
    return found is not None and bytes(found) == chain
