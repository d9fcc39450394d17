"""The open rest of a bill: split by the same evidence and function as the close, part by part."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select

from ledger.fleet.hours import GRACE_US, close_hours
from ledger.fleet.running import OpenHoursPart, fit, open_from, pieces_of, running
from ledger.orm import tables as orm
from ledger.queries import reads as queries
from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, HourCell, Scope
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
RATE = 3_600_000_000_007  # awkward on purpose
END = Scope(START_US, START_US + HOUR_US)


def contract(engine, **changes):
    row = {
        "pool": "chat", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
        "billing": "reserved", "pusd_per_hour": RATE, "recorded_us": START_US, **changes,
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [row])


def samples(engine, *seen, name="chat/0"):
    rows = [
        {"at_us": START_US + minute * MINUTE_US, "pool": "chat", "engine": name, "health": health}
        for minute, health in seen
    ]
    with engine.begin() as connection:
        connection.execute(insert(orm.EngineSampleRow), rows)


@pytest.fixture
def work(engine, opened, settled):
    """Write attempts as (minute of settling, team, engine minutes)."""

    def work(*done):
        records = []
        for number, (minute, team, busy) in enumerate(done):
            at_us = START_US + minute * MINUTE_US
            own = {"backend": "own", "pool": "chat", "provider": None, "holds": ()}
            records.append(opened(number, opened_us=at_us, team_id=team, **own))
            records.append(
                settled(number, settled_us=at_us, engine_us=busy * MINUTE_US, cost_pusd=number)
            )
        LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)

    return work


def rest_of(engine, scope, bucket_us=HOUR_US, closed=()):
    with engine.connect() as connection:
        (found,) = queries.contracts(connection)
        return running(connection, found, closed, scope, bucket_us=bucket_us)


def test_loading_and_down_are_unavailable_while_the_hour_runs(engine, work):
    contract(engine, pusd_per_hour=60 * 10**12)
    samples(engine, (0, "loading"), (10, "loading"), (20, "healthy"), (25, "down"), (30, "healthy"))
    work((22, "search", 4))
    rest = rest_of(engine, Scope(START_US, START_US + 30 * MINUTE_US))
    minute = 10**12
    assert rest.unavailable_pusd == 15 * minute, "ten minutes loading, five down"
    assert rest.used_pusd == {"search": 4 * minute}
    assert rest.idle_pusd == 11 * minute
    assert rest.bill_pusd == 30 * minute
    assert (rest.paid_us, rest.unavailable_us) == (30 * MINUTE_US, 15 * MINUTE_US)


@pytest.mark.parametrize("billing", ["reserved", "on_demand", "owned"])
@pytest.mark.parametrize("begins", [0, 13])
def test_an_hour_looks_no_different_after_it_was_closed(engine, work, billing, begins):
    contract(engine, billing=billing, replicas=2, recorded_us=START_US + begins * MINUTE_US)
    samples(engine, (15, "loading"), (22, "loading"), (31, "healthy"), (44, "draining"))
    samples(engine, (46, "healthy"), (59, "healthy"), (61, "healthy"), name="chat/1")
    work((33, "search", 7), (34, "ads", 3), (50, "search", 1))
    open_ = rest_of(engine, END)
    assert close_hours(engine, at_us=END.end_us + GRACE_US) == 1
    with engine.connect() as connection:
        (hour,) = connection.execute(select(*orm.GpuHourRow.__table__.columns)).mappings()
        teams = dict(
            connection.execute(
                select(orm.GpuHourTeamRow.team_id, orm.GpuHourTeamRow.used_pusd)
            ).all()
        )
    assert open_.used_pusd == teams
    assert (open_.bill_pusd, open_.idle_pusd, open_.unavailable_pusd) == (
        hour["bill_pusd"], hour["idle_pusd"], hour["unavailable_pusd"],
    )  # fmt: skip
    assert (open_.paid_us, open_.unavailable_us) == (2 * hour["span_us"], hour["unavailable_us"])
    assert hour["span_us"] == (60 - begins) * MINUTE_US
    assert open_.unavailable_pusd > 0


@pytest.mark.parametrize("bucket_us", [MINUTE_US, 10 * MINUTE_US, HOUR_US, DAY_US])
def test_parts_add_up_to_the_rest(engine, work, bucket_us):
    contract(engine, recorded_us=START_US + 7 * MINUTE_US + 1)
    samples(engine, *((n, ("loading", "healthy", "down")[n % 3]) for n in range(7, 100, 4)))
    work((9, "a", 30), (30, "b", 2), (70, "a", 40))  # more work than fits where it settled
    rest = rest_of(engine, Scope(START_US, START_US + 95 * MINUTE_US + 3), bucket_us)
    parts = rest.parts
    assert sum(part.bill_pusd for part in parts) == rest.bill_pusd
    assert sum(part.used_pusd for part in parts) == sum(rest.used_pusd.values())
    assert sum(part.idle_pusd for part in parts) == rest.idle_pusd
    assert sum(part.unavailable_pusd for part in parts) == rest.unavailable_pusd
    for part in parts:
        assert part.used_pusd + part.idle_pusd + part.unavailable_pusd == part.bill_pusd
        assert min(part.used_pusd, part.idle_pusd, part.unavailable_pusd) >= 0


def test_parts_lie_where_things_happened(engine, work):
    contract(engine, pusd_per_hour=60 * 10**12)
    samples(engine, (0, "healthy"), (10, "healthy"), (20, "down"), (30, "healthy"))
    work((5, "a", 3))
    rest = rest_of(engine, Scope(START_US, START_US + 30 * MINUTE_US), 10 * MINUTE_US)
    minute = 10**12
    assert rest.parts == tuple(
        OpenHoursPart(
            START_US + n * 10 * MINUTE_US, 10 * minute, used, 10 * minute - used - down, down
        )
        for n, (used, down) in enumerate(((3 * minute, 0), (0, 10 * minute), (0, 0)))
    )


def test_a_rate_that_changes_begins_with_its_hour(engine):
    contract(engine, pusd_per_hour=100)
    contract(engine, pusd_per_hour=40, recorded_us=START_US + HOUR_US + 5)
    rest = rest_of(engine, Scope(START_US, START_US + 3 * HOUR_US))
    assert [part.bill_pusd for part in rest.parts] == [100, 40, 40]


def test_without_a_rate_there_is_no_bill(engine):
    contract(engine, pusd_per_hour=None)
    rest = rest_of(engine, END)
    assert (rest.from_us, rest.bill_pusd, rest.parts) == (START_US, 0, ())


def test_the_rest_begins_after_the_last_closed_hour(engine):
    contract(engine)
    cell = HourCell("chat", START_US, 1, HOUR_US, 0, 0, 0, 0, 0, 0, HOUR_US, START_US)
    scope = Scope(START_US, START_US + 3 * HOUR_US)
    assert rest_of(engine, scope, closed=[cell]).from_us == START_US + HOUR_US
    other = replace(cell, pool="other", last_hour_us=START_US + HOUR_US)
    assert rest_of(engine, scope, closed=[other]).from_us == START_US


def test_hours_closed_before_the_scope_leave_all_of_it_open(engine):
    contract(engine)
    close_hours(engine, at_us=START_US + HOUR_US + GRACE_US)
    scope = Scope(START_US + 20 * MINUTE_US, START_US + 80 * MINUTE_US)
    assert rest_of(engine, scope).from_us == scope.start_us


@pytest.mark.parametrize(
    ("recorded", "since", "seen", "expected"),
    [
        (5, None, None, 5),  # hours after the scope's start: the contract's record
        (5, None, 2, 2),  # attempts were there before the contract was written down
        (-9, None, None, 0),  # never before the scope
        (-9, date(2026, 5, 29), None, 24),  # never before the contract's first day
        (5, date(2026, 5, 28), None, 0),  # a contract runs from its first day, seen or not
    ],
)
def test_without_closed_hours_it_begins_with_the_bill(
    engine, work, recorded, since, seen, expected
):
    assert START_US == 1_779_926_400_000_000, "midnight of 2026-05-28 UTC"
    contract(engine, recorded_us=START_US + recorded * HOUR_US, since=since)
    if seen is not None:
        work((seen * 60, "a", 1))
    with engine.connect() as connection:
        (found,) = queries.contracts(connection)
        begins = open_from(connection, found, [], Scope(START_US, START_US + 3 * DAY_US))
    assert begins == START_US + expected * HOUR_US


@pytest.mark.parametrize(
    ("span", "width", "pieces"),
    [
        ((0, 10), 10, [(0, 10)]),
        ((3, 10), 10, [(3, 10)]),
        ((3, 25), 10, [(3, 10), (10, 20), (20, 25)]),
        ((20, 40), 10, [(20, 30), (30, 40)]),
    ],
)
def test_pieces_are_cut_at_multiples(span, width, pieces):
    assert pieces_of(span, width) == pieces


@given(
    pairs=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8),
    share=st.fractions(0, 1),
)
def test_fit_places_the_whole_total_within_the_rooms(pairs: list, share) -> None:
    wanted, rooms = zip(*pairs, strict=True)
    total = int(sum(rooms) * share)
    shares = fit(wanted, rooms, total)
    assert sum(shares) == total
    assert all(0 <= each_share <= room for each_share, room in zip(shares, rooms, strict=True))


def test_fit_leaves_alone_what_fits() -> None:
    assert fit([3, 1, 2], [5, 5, 5], 6) == [3, 1, 2]
    assert fit([9, 0, 0], [5, 5, 5], 9) == [5, 4, 0]
    assert fit([0, 0, 9], [5, 5, 5], 9) == [0, 4, 5]
