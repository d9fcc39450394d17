"""Sums of retired attempts, and the chain that binds them.

A retirement of a part of a link is chained to the previous part and to the link's own chain value.
The last value, noted elsewhere, reveals any edited, added or removed part.
"""

from collections.abc import Generator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, select

from ledger.orm.seals import RetirementRow, SealRow
from ledger.seals.retired_bookings import digest_bookings, digests_by_part
from ledger.seals.seal import GENESIS

_SUMS = (
    "until_us", "attempts", "posted", "input_tokens", "output_tokens", "engine_us", "cost_pusd",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RetiredTotals:
    """Sums of retired attempts, all opened before `until_us`, which is 0 if there are none."""

    until_us: int = 0
    attempts: int = 0
    posted: int = 0  # attempts with a cost
    input_tokens: int = 0
    output_tokens: int = 0
    engine_us: int = 0
    cost_pusd: int = 0


@dataclass(frozen=True, slots=True)
class RetirementPart:
    """One retired part of a link's attempts, with the fields of `orm.RetirementRow`."""

    number: int
    part: int
    ends: bool
    retired_us: int
    sums: RetiredTotals
    gone: bytes
    left_rows: int
    left: bytes
    bookings: bytes | None = None

    def chain(self, before: bytes, link: bytes) -> bytes:
        """Return the chain value after that of the previous part (`GENESIS` for the first).

        `link` is the chain value of its link.
        """
        # Encoded as text, because sums may exceed 64 bits.
        said = {name: item if isinstance(item, bytes) else str(int(item))  # type: ignore[call-overload]
                for name, item in self.row().items()
                if item is not None}  # fmt: skip
        return sha256(before + link + msgspec.msgpack.encode(sorted(said.items()))).digest()

    def row(self) -> dict[str, object]:
        plain = ("number", "part", "ends", "retired_us", "gone", "left_rows", "left", "bookings")
        found: dict[str, object] = {name: getattr(self, name) for name in plain}
        return found | {name: getattr(self.sums, name) for name in _SUMS}


def retirement_parts(connection: Connection) -> list[tuple[RetirementPart, bytes]]:
    """Return every part with its stored chain value, in order."""
    query = select(RetirementRow.__table__).order_by(RetirementRow.number, RetirementRow.part)
    return [_part(row) for row in connection.execute(query).all()]


def last(connection: Connection) -> tuple[RetirementPart | None, bytes]:
    """Return the last part, and the chain value that the next one follows."""
    query = select(RetirementRow.__table__)
    latest = query.order_by(RetirementRow.number.desc(), RetirementRow.part.desc()).limit(1)
    row = connection.execute(latest).one_or_none()
    return (None, GENESIS) if row is None else _part(row)


def retired_totals(connection: Connection) -> RetiredTotals:
    """Return the sums of all retired attempts."""
    found = [part.sums for part, _ in retirement_parts(connection)]
    return RetiredTotals(
        max((totals.until_us for totals in found), default=0),
        *(sum(getattr(totals, name) for totals in found) for name in _SUMS[1:]),
    )


def retired_until_us(connection: Connection) -> int:
    """Return the time before which single attempts may be deleted, 0 if none was."""
    return int(connection.execute(select(func.max(RetirementRow.until_us))).scalar() or 0)


def retirements_hold(connection: Connection) -> Generator[tuple[str, str], None, None]:
    """Check for `verify` that parts have no gap, each bound to its link and the previous part."""
    before, follows = GENESIS, (1, 0)
    bookings = digests_by_part(connection)
    links = {number: bytes(chain) for number, chain in connection.execute(_LINKS).all()}
    for part, chain in retirement_parts(connection):
        name = f"retirement {part.number}.{part.part}"
        if (part.number, part.part) != follows:
            yield name, f"{follows[0]}.{follows[1]} is missing before it"
        if part.chain(before, links.get(part.number, b"")) != chain:
            yield name, "the chain is broken here: a retirement or its seal was edited"
        nothing = None if part.bookings is None else digest_bookings(())
        if bookings.pop((part.number, part.part), nothing) != part.bookings:
            yield name, "what its attempts were booked at was edited"
        before = chain
        follows = (part.number + 1, 0) if part.ends else (part.number, part.part + 1)
    for number, place in bookings:
        yield f"retirement {number}.{place}", "there are bookings of it, and it is missing"


_LINKS = (
    select(SealRow.number, SealRow.chain)
    .where(SealRow.number <= select(func.max(RetirementRow.number)).scalar_subquery())
    .order_by(SealRow.number)
)


def _part(row: Row[Any]) -> tuple[RetirementPart, bytes]:
    sums = RetiredTotals(*(getattr(row, name) for name in _SUMS))
    part = RetirementPart(
        row.number, row.part, row.ends, row.retired_us, sums, bytes(row.gone), row.left_rows,
        bytes(row.left), None if row.bookings is None else bytes(row.bookings),
    )  # fmt: skip
    return part, bytes(row.chain)
