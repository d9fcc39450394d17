"""The arithmetic of seals: a row's leaf, a link's digest, the chain. Pure; the hash is SHA-256.

A leaf is the hash of a row's table, names and values. Columns that are null are left out, so a
column that is added later changes no leaf; nor does the order in which columns stand. A link's
digest is the hash of its leaves in their order; its chain value binds the digest and the link's
own numbers to all links before it. Whoever holds a chain value can prove what the books said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

GENESIS = bytes(32)  # stands before the first link
_encode = msgspec.msgpack.encode


@dataclass(frozen=True, slots=True)
class SealRanges:
    """The last `seq` of each table up to which a link looked."""

    attempts: int = 0
    postings: int = 0
    refusals: int = 0
    prices: int = 0


@dataclass(frozen=True, slots=True)
class SealLink:
    """One seal as it is chained. `rows` is the number of leaves under `digest`."""

    number: int
    sealed_us: int
    to: SealRanges
    rows: int
    digest: bytes

    def chain(self, before: bytes) -> bytes:
        """Its chain value after the one before it (`GENESIS` before the first)."""
        to = self.to
        fields = (
            self.number, self.sealed_us, to.attempts, to.postings, to.refusals, to.prices,
            self.rows, self.digest,
        )  # fmt: skip
        return sha256(before + _encode(fields)).digest()


def leaf(table: str, names: Sequence[str], values: Sequence[Any], *rest: bytes) -> bytes:
    """The hash of one row, and of leaves that belong to it (`rest`)."""
    pairs = zip(names, values, strict=True)
    # Most rows of the smaller tables have no null: they need no look at each value.
    said = [pair for pair in pairs if pair[1] is not None] if None in values else list(pairs)
    return sha256(_encode((table, said)) + b"".join(rest)).digest()


def said_leaf(table: str, *said: Any) -> bytes:
    """The hash of what is said of one row, nulls included."""
    return sha256(_encode((table, said))).digest()


def digest(leaves: Iterable[bytes]) -> bytes:
    return sha256(b"".join(leaves)).digest()
