"""The hash functions of seals (SHA-256): leaf of a row, digest of a link, chain. No I/O.

A leaf is the hash of a row's table, column names and values. Null columns are left out, so a column
that is added later changes no leaf; neither does the order of columns. A link's digest is the hash
of its leaves in order. Its chain value binds the digest and the link's numbers to all previous
links, and so proves all that was sealed before.
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
    """The last `seq` of each table that a link covers."""

    attempts: int = 0
    postings: int = 0
    refusals: int = 0
    prices: int = 0


@dataclass(frozen=True, slots=True)
class SealLink:
    """One seal of the chain. `rows` is the number of leaves under `digest`."""

    number: int
    sealed_us: int
    to: SealRanges
    rows: int
    digest: bytes

    def chain(self, before: bytes) -> bytes:
        """Return the chain value after that of the previous link (`GENESIS` for the first)."""
        to = self.to
        fields = (
            self.number, self.sealed_us, to.attempts, to.postings, to.refusals, to.prices,
            self.rows, self.digest,
        )  # fmt: skip
        return sha256(before + _encode(fields)).digest()


def leaf(table: str, names: Sequence[str], values: Sequence[Any], *rest: bytes) -> bytes:
    """Return the hash of one row and of the leaves that belong to it (`rest`)."""
    pairs = zip(names, values, strict=True)
    # Most rows of the smaller tables have no null, which skips the check of each value.
    said = [pair for pair in pairs if pair[1] is not None] if None in values else list(pairs)
    return sha256(_encode((table, said)) + b"".join(rest)).digest()


def said_leaf(table: str, *said: Any) -> bytes:
    """Return the hash of annex data about one row, including nulls."""
    return sha256(_encode((table, said))).digest()


def digest(leaves: Iterable[bytes]) -> bytes:
    return sha256(b"".join(leaves)).digest()
