"""The heads of all chains as one word, which somebody notes elsewhere: `ledger seal`.

NUMBER:HASH of the seals, of the log of changes and of the annex; of a chain that has begun none
before it is left out.
"""

from sqlalchemy import Connection

from ledger.seals.annex import annex_entry_is_there, annex_head
from ledger.seals.audit_log import register_head
from ledger.seals.sealer import head
from ledger.verify.registers import register_entry_is_there
from ledger.verify.seals import head_is_there

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
    looks = (head_is_there, register_entry_is_there, annex_entry_is_there)
    begun = [(look, *pair) for look, pair in zip(looks, noted, strict=False) if pair[0]]
    return all(look(connection, number, chain) for look, number, chain in begun)
