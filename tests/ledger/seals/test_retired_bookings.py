"""Lines of a part are summed in a fixed order, and every cell of them is under their digest."""

from dataclasses import fields, replace

from sqlalchemy import select

from ledger.orm import tables as orm
from ledger.seals.retired_bookings import (
    QUARTER_US,
    RetiredBooking,
    add_bookings,
    digest_bookings,
    digests_by_part,
    sum_bookings,
)

LINE = RetiredBooking("openai", QUARTER_US, "m", "search", 2, 10**30, 7, 0)


def test_every_cell_and_every_place_is_under_the_digest() -> None:
    digests = [digest_bookings([]), digest_bookings([(0, LINE)]), digest_bookings([(1, LINE)])]
    for field in fields(RetiredBooking):
        value = getattr(LINE, field.name)
        more = value + "x" if isinstance(value, str) else value + 1
        digests.append(digest_bookings([(0, replace(LINE, **{field.name: more}))]))
    assert len(set(digests)) == len(digests)


def test_what_is_stored_has_the_digest_of_what_was_summed(engine) -> None:
    parts = {(1, 0): [LINE, replace(LINE, team_id="support")], (1, 1): [LINE]}
    with engine.begin() as connection:
        for (number, part), lines in parts.items():
            add_bookings(connection, number, part, lines)
        add_bookings(connection, 2, 0, [])
        stored = digests_by_part(connection)
    assert stored == {key: digest_bookings(enumerate(lines)) for key, lines in parts.items()}


def test_costs_are_summed_by_quarter_model_and_team(engine, opened, settled, write) -> None:
    start_us = 2 * 10**9 * 900_000
    made = (
        (0, "reported", None), (1, "bound", None), (2, "bound", 450), (QUARTER_US, "reported", None)
    )  # fmt: skip
    for number, (at_us, basis, claimed) in enumerate(made):
        more = {} if claimed is None else {"claimed_pusd": claimed}
        end = settled(number, settled_us=start_us + at_us, cost_pusd=400, basis=basis, **more)
        write(engine, opened(number), end)
    write(engine, opened(9, provider=None, backend="own"), settled(9))
    with engine.connect() as connection:
        seqs = [*connection.execute(select(orm.AttemptRow.seq)).scalars()]
        lines = sum_bookings(connection, [seqs[:2], seqs[2:]])
    key = ("openai", start_us, "gpt-4o-mini", "search")
    assert lines == [
        RetiredBooking(*key, 3, 800, 400, 50),
        RetiredBooking(key[0], start_us + QUARTER_US, *key[2:], 1, 400, 0, 0),
    ]
