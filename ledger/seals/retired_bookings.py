"""Sums of the booked cost of retired attempts, by provider, time, model and team.

A bill may be posted, corrected and matched with claims long after the attempts of its days were
deleted. Lines belong to one part of a retirement: they are added with it, its chain value binds
their digest, and they never change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, fields

import msgspec
from sqlalchemy import Connection, case, func, insert, literal_column, select

from ledger.invoices.bookings import RetiredBooking, is_uncertain
from ledger.orm.books import AttemptRow, ClaimRow
from ledger.orm.seals import RetiredBookingRow
from ledger.orm.types import exact_sum
from ledger.seals.seal import digest

QUARTER_US = 15 * 60 * 1_000_000


def sum_bookings(connection: Connection, groups: Iterable[Sequence[int]]) -> list[RetiredBooking]:
    """Return the booked cost of the attempts with these numbers, in a fixed order."""
    start = AttemptRow.settled_us - AttemptRow.settled_us % literal_column(str(QUARTER_US))
    cost = func.coalesce(AttemptRow.cost_pusd, 0)
    columns = (AttemptRow.provider, start, AttemptRow.upstream_model, AttemptRow.team_id)
    sums: dict[tuple[str, int, str, str], list[int]] = {}
    for seqs in groups:
        query = (
            select(
                *columns,
                func.count(),
                exact_sum(case((is_uncertain(), 0), else_=cost)),
                exact_sum(case((is_uncertain(), cost), else_=0)),
                exact_sum(func.coalesce(ClaimRow.claimed_pusd - ClaimRow.booked_pusd, 0)),
            )
            .outerjoin(ClaimRow, ClaimRow.attempt_id == AttemptRow.attempt_id)
            .where(AttemptRow.seq.in_(seqs), AttemptRow.provider.is_not(None))
            .group_by(*columns)
        )
        for provider, start_us, model, team, *counts in connection.execute(query):
            key = str(provider), int(start_us or 0), model, team
            total = sums.setdefault(key, [0] * len(counts))
            for place, count in enumerate(counts):
                total[place] += int(count)
    return [RetiredBooking(*key, *sums[key]) for key in sorted(sums)]


def digest_bookings(lines: Iterable[tuple[int, RetiredBooking]]) -> bytes:
    """Return the digest of a part's numbered lines that the chain of retirements binds."""
    # Encoded as text, because sums may exceed 64 bits.
    return digest(
        msgspec.msgpack.encode([str(cell) for cell in (place, *astuple(line))])
        for place, line in lines
    )


def add_bookings(
    connection: Connection, number: int, part: int, lines: Sequence[RetiredBooking]
) -> None:
    rows = [
        {"number": number, "part": part, "line": place} | asdict(line)
        for place, line in enumerate(lines)
    ]
    if rows:
        connection.execute(insert(RetiredBookingRow), rows)


def digests_by_part(connection: Connection) -> dict[tuple[int, int], bytes]:
    """Return the digest of the stored lines by link and part."""
    table = RetiredBookingRow
    names = [field.name for field in fields(RetiredBooking)]
    query = select(table.number, table.part, table.line, *(getattr(table, name) for name in names))
    order = (table.number, table.part, table.line)
    lines: dict[tuple[int, int], list[tuple[int, RetiredBooking]]] = {}
    for number, part, line, *values in connection.execute(query.order_by(*order)):
        lines.setdefault((number, part), []).append((line, RetiredBooking(*values)))
    return {key: digest_bookings(stored) for key, stored in lines.items()}
