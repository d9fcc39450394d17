"""Closing hours: exact, once, by contract, whatever was seen of the engines."""

from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select

from ledger.budgets.windows import window_at
from ledger.fleet.hours import GRACE_US, HOUR_US, close_hours, gpu_entry
from ledger.journals.records import Hold
from ledger.orm import tables as orm
from ledger.verify.checks import verify
from ledger.writing.repository import LedgerRepository

DAY_US = 1_779_926_400_000_000  # midnight of 2026-05-28 UTC
RATE = 3_600_000_000_000  # 3.60 USD an hour
MINUTE_US = 60_000_000


def contract(engine, **changes):
    row = {
        "pool": "chat",
        "gpu_type": "H200",
        "gpus_per_replica": 1,
        "replicas": 2,
        "billing": "reserved",
        "pusd_per_hour": RATE,
        "since": date(2026, 5, 28),
        "recorded_us": DAY_US,
        **changes,
    }
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [row])


def sample(engine, minute, health, name="chat/0"):
    row = {"at_us": DAY_US + minute * MINUTE_US, "pool": "chat", "engine": name, "health": health}
    with engine.begin() as connection:
        connection.execute(insert(orm.EngineSampleRow), [row])


def hours(engine):
    with engine.connect() as connection:
        table = orm.GpuHourRow
        columns = (table.hour_us, table.bill_pusd, table.used_pusd, table.idle_pusd,
                   table.unavailable_pusd)  # fmt: skip
        return [tuple(row) for row in connection.execute(select(*columns).order_by(table.hour_us))]


def close_after(engine, count):
    return close_hours(engine, at_us=DAY_US + count * HOUR_US + GRACE_US)


@pytest.fixture
def own(opened, settled):
    def own(number, *, team, engine_us, cost, hour=0, minute=0):
        at_us = DAY_US + hour * HOUR_US + minute * MINUTE_US
        return (
            opened(number, backend="own", pool="chat", provider=None, team_id=team, holds=(),
                   bound_pusd=10**13, opened_us=at_us),
            settled(number, cost_pusd=cost, engine_us=engine_us, settled_us=at_us + number),
        )  # fmt: skip

    return own


def test_an_hour_without_a_request_is_idle_and_closed_once(engine):
    contract(engine)
    assert close_after(engine, 2) == 2
    assert close_after(engine, 2) == 0
    assert hours(engine) == [
        (DAY_US, 2 * RATE, 0, 2 * RATE, 0),
        (DAY_US + HOUR_US, 2 * RATE, 0, 2 * RATE, 0),
    ]


def test_an_hour_is_left_open_until_its_settles_had_time(engine):
    contract(engine)
    assert close_hours(engine, at_us=DAY_US + HOUR_US + GRACE_US - 1) == 0


def test_use_is_split_by_engine_time_and_corrects_what_was_charged(engine, own):
    contract(engine)
    records = [
        record
        for number, team, engine_us, cost in (
            (1, "search", HOUR_US // 2, RATE),  # charged twice what it used
            (2, "search", HOUR_US // 4, 7),
            (3, "ads", HOUR_US // 4, RATE // 4),
        )
        for record in own(number, team=team, engine_us=engine_us, cost=cost)
    ]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    sample(engine, 0, "healthy")
    sample(engine, 10, "loading")  # for ten minutes
    sample(engine, 20, "healthy")
    close_after(engine, 1)
    minute = RATE // 60
    assert hours(engine) == [(DAY_US, 2 * RATE, RATE, 50 * minute, 10 * minute)]
    with engine.connect() as connection:
        teams = connection.execute(
            select(orm.GpuHourTeamRow.team_id, orm.GpuHourTeamRow.used_pusd).order_by("team_id")
        ).all()
        assert [tuple(team) for team in teams] == [("ads", RATE // 4), ("search", 3 * RATE // 4)]
        balances = dict(
            connection.execute(
                select(orm.PostingRow.account, orm.exact_sum(orm.PostingRow.amount_pusd)).group_by(
                    orm.PostingRow.account
                )
            ).all()
        )
        assert verify(connection).is_clean
    assert balances == {
        "expense:team:search": 3 * RATE // 4,
        "expense:team:ads": RATE // 4,
        "expense:idle:chat": 50 * minute,
        "expense:unavailable:chat": 10 * minute,
        "payable:gpu:chat": -2 * RATE,
    }


def test_a_sample_reaches_across_hours_but_not_across_silence(engine):
    contract(engine, replicas=1)
    sample(engine, 50, "healthy")
    sample(engine, 65, "down")  # 50 to 65: ten minutes of the first hour, five of the second
    sample(engine, 180, "down")  # after silence: only the last quarter of an hour
    close_after(engine, 4)
    quarter = RATE // 4
    assert [row[4] for row in hours(engine)] == [RATE // 6, RATE // 12, quarter, 0]


@pytest.mark.parametrize("killed", [False, True])
def test_an_engine_killed_for_an_hour_changes_no_bill_on_the_day_the_clocks_change(
    engine, opened, settled, killed
):
    """Of 25 hours by the budget's calendar, at a rate that no second divides; to the last unit."""
    rate, minute = 9_800_000_000_001, MINUTE_US
    noon_s = 1_792_929_600  # 2026-10-25, in Berlin an hour longer
    day = window_at("day", "Europe/Berlin", noon_s)
    start_us, count = day.start_s * 10**6, (day.end_s - day.start_s) // 3600
    assert count == 25
    contract(engine, replicas=1, pusd_per_hour=rate, since=date(2026, 10, 24), recorded_us=1)
    # From 01:00 UTC on, when the clocks go back: the second 02:00 to 03:00 of that night.
    down = range(3 * HOUR_US, 4 * HOUR_US) if killed else range(0)
    samples = [
        {"at_us": start_us + at, "pool": "chat", "engine": "chat/0",
         "health": "down" if at in down else "healthy"}
        for at in range(0, count * HOUR_US + 1, 5 * minute)
    ]  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.EngineSampleRow), samples)
    served = [hour for hour in range(count) if hour * HOUR_US not in down]
    own = {"backend": "own", "pool": "chat", "provider": None, "bound_pusd": 10**13,
           "holds": (Hold("team:search@day", day.start_s, 0),)}  # fmt: skip
    records = []
    for hour in served:
        at_us = start_us + hour * HOUR_US
        end = {"cost_pusd": 7 + hour, "engine_us": 1_234_567_891, "settled_us": at_us + 2 * 10**9}
        records += [opened(hour, opened_us=at_us, **own), settled(hour, **end)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    end_us = start_us + count * HOUR_US
    close_hours(engine, at_us=end_us + GRACE_US)
    every = hours(engine)
    billed = sum(row[1] for row in every)
    found = [row for row in every if start_us <= row[0] < end_us]
    bills, unavailable = [row[1] for row in found], [row[4] for row in found]
    assert bills == [rate] * count
    assert all(bill == used + idle + away for _, bill, used, idle, away in found)
    assert min(row[3] for row in found) >= 0
    assert sum(unavailable) == (rate if killed else 0)
    with engine.connect() as connection:
        spent = select(orm.BudgetWindowRow.spent_pusd).where(
            orm.BudgetWindowRow.window == day.start_s
        )
        assert connection.execute(spent).scalar_one() == sum(7 + hour for hour in served)
        owed = select(orm.exact_sum(orm.PostingRow.amount_pusd)).where(
            orm.PostingRow.account == "payable:gpu:chat"
        )
        assert connection.execute(owed).scalar_one() == -billed
        assert verify(connection).findings == ()


def test_machines_on_demand_are_billed_while_they_run(engine):
    contract(engine, replicas=1, billing="on_demand")
    sample(engine, 0, "loading")
    sample(engine, 10, "loading")
    sample(engine, 20, "healthy")
    sample(engine, 30, "down")
    close_after(engine, 1)
    ((_, bill, used, idle, unavailable),) = hours(engine)
    assert bill == RATE // 3
    assert used + idle + unavailable == bill


@pytest.mark.parametrize(("billing", "bill"), [("on_demand", RATE // 2), ("reserved", RATE)])
def test_what_is_stopped_by_the_calendar_is_neither_down_nor_up(engine, billing, bill):
    contract(engine, replicas=1, billing=billing)
    sample(engine, 0, "healthy")
    for minute in (10, 20, 30):
        sample(engine, minute, "healthy")
    for minute in (40, 50, 60):
        sample(engine, minute, "off")
    close_after(engine, 1)
    ((_, billed, used, idle, unavailable),) = hours(engine)
    assert (billed, used, idle, unavailable) == (bill, 0, bill, 0)


def test_without_a_rate_an_hour_stays_open_until_one_is_stated(engine):
    contract(engine, pusd_per_hour=None)
    assert close_after(engine, 3) == 0
    contract(engine, recorded_us=DAY_US + 2 * HOUR_US)
    assert close_after(engine, 3) == 3


def test_a_rate_changes_from_the_hour_in_which_it_is_stated(engine):
    contract(engine)
    contract(engine, pusd_per_hour=RATE // 2, recorded_us=DAY_US + HOUR_US + 5)
    close_after(engine, 3)
    assert [row[1] for row in hours(engine)] == [2 * RATE, RATE, RATE]


def test_nothing_is_billed_outside_the_term(engine):
    contract(engine, until=date(2026, 5, 28), recorded_us=DAY_US)
    close_after(engine, 26)
    assert [row[1] for row in hours(engine)] == [2 * RATE] * 24 + [0, 0]


def test_without_a_start_the_first_evidence_begins(engine, own):
    contract(engine, since=None, recorded_us=DAY_US + 9 * HOUR_US)
    records = own(1, team="ads", engine_us=5, cost=5, hour=7)
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    close_after(engine, 9)
    assert [row[0] for row in hours(engine)] == [DAY_US + 7 * HOUR_US, DAY_US + 8 * HOUR_US]


def test_a_first_hour_is_billed_from_its_first_evidence(engine, own):
    contract(engine, since=None, replicas=1, recorded_us=DAY_US + 40 * MINUTE_US)
    records = own(1, team="ads", engine_us=5 * MINUTE_US, cost=5, minute=45)
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    close_after(engine, 2)
    minute = RATE // 60
    assert hours(engine) == [
        (DAY_US, 20 * minute, 5 * minute, 15 * minute, 0),
        (DAY_US + HOUR_US, RATE, 0, RATE, 0),
    ]


def test_the_entry_of_an_hour_is_named_after_it():
    assert gpu_entry("chat", 5) == "gpu:chat:5"
    assert gpu_entry("chat", 5, 2) == "gpu:chat:5:2"


def sums(engine):
    """Everything that adds up over an hour's rows, and the balances."""
    hour, team, line = orm.GpuHourRow, orm.GpuHourTeamRow, orm.PostingRow
    with engine.connect() as connection:
        whole = [hour.bill_pusd, hour.used_pusd, hour.idle_pusd, hour.unavailable_pusd,
                 hour.busy_us, hour.unavailable_us, hour.replicas * hour.span_us]  # fmt: skip
        parts = [team.used_pusd, team.provisional_pusd, team.engine_us]
        queries = (
            (hour.hour_us, whole),
            (team.hour_us.concat(team.team_id), parts),
            (line.account, [line.amount_pusd]),
        )
        found = [
            {
                key: values
                for key, *values in connection.execute(
                    select(key, *map(orm.exact_sum, columns)).group_by(key)
                )
                if any(values)
            }
            for key, columns in queries
        ]
        assert verify(connection).is_clean, verify(connection).findings
    return found


def rows_of(engine, table):
    with engine.connect() as connection:
        return connection.execute(select(*table.__table__.columns)).all()


def test_a_settle_after_the_close_is_corrected_and_nothing_is_edited(engine, own):
    contract(engine)
    repository = LedgerRepository(engine, host="h")
    repository.import_records(
        own(1, team="search", engine_us=HOUR_US // 2, cost=7), journal="j", at_us=1
    )
    close_after(engine, 1)
    before = {
        table: rows_of(engine, table)
        for table in (orm.GpuHourRow, orm.GpuHourTeamRow, orm.PostingRow)
    }
    late = own(2, team="ads", engine_us=HOUR_US // 4, cost=RATE)
    repository.import_records(late, journal="j", at_us=DAY_US + 9 * HOUR_US)
    for table, rows in before.items():
        assert set(rows) < set(rows_of(engine, table)), "rows are added, none is changed"
    hour, _, balances = sums(engine)
    assert hour == {
        DAY_US: [2 * RATE, 3 * RATE // 4, 5 * RATE // 4, 0, 3 * HOUR_US // 4, 0, 2 * HOUR_US]
    }
    assert balances == {
        "expense:team:search": [RATE // 2],
        "expense:team:ads": [RATE // 4],
        "expense:idle:chat": [5 * RATE // 4],
        "payable:gpu:chat": [-2 * RATE],
    }
    entries = {row.entry_id: row.at_us for row in rows_of(engine, orm.PostingRow)}
    assert entries["gpu:chat:" + str(DAY_US) + ":1"] == DAY_US + 9 * HOUR_US
    again = {table: rows_of(engine, table) for table in before}
    repository.import_records(late, journal="j", at_us=DAY_US + 9 * HOUR_US)
    assert again == {table: rows_of(engine, table) for table in before}


def test_an_open_hour_needs_no_correction(engine, own):
    contract(engine)
    close_after(engine, 1)
    records = own(1, team="ads", engine_us=5, cost=5, hour=1)
    LedgerRepository(engine, host="h").import_records(
        records, journal="j", at_us=DAY_US + 3 * HOUR_US
    )
    assert len(rows_of(engine, orm.GpuHourRow)) == 1
    close_after(engine, 2)
    assert {row.correction for row in rows_of(engine, orm.GpuHourRow)} == {0}


def test_a_lost_attempt_that_settles_after_the_close_is_corrected(engine, own):
    contract(engine)
    opened, settled = own(1, team="ads", engine_us=HOUR_US // 10, cost=3)
    repository = LedgerRepository(engine, host="h")
    repository.import_records([opened], journal="j", at_us=1)
    repository.settle_lost("j", at_us=DAY_US + 5)
    close_after(engine, 1)
    assert sums(engine)[0][DAY_US][1] == 0, "a bound is no bill"
    repository.import_records([settled], journal="j", at_us=DAY_US + 2 * HOUR_US)
    assert sums(engine)[0][DAY_US][1] == RATE // 10


LATE = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, HOUR_US),
        st.integers(0, 2 * RATE),
        st.integers(0, 1),
        st.booleans(),
    ),
    max_size=6,
)


@settings(
    max_examples=settings.default.max_examples // 6,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(work=LATE)
def test_however_late_settles_come_the_hour_ends_up_the_same(engine, own, work):
    """Settled before the close, after it together, or each alone: one bill, one split."""
    results = []
    for order in ("before", "together", "apart"):
        with engine.begin() as connection:
            for table in reversed(orm.LedgerBase.metadata.sorted_tables):
                connection.execute(delete(table))
        contract(engine, replicas=1, pusd_per_hour=RATE + 7)
        sample(engine, 0, "healthy")
        sample(engine, 14, "down")
        sample(engine, 20, "healthy")
        repository = LedgerRepository(engine, host="h")
        early, late = [], []
        for number, (team, engine_us, cost, hour, is_late) in enumerate(work):
            pair = own(number, team=team, engine_us=engine_us, cost=cost, hour=hour)
            (late if is_late else early).append(pair)
        at_us = DAY_US + 5 * HOUR_US
        flat = [record for pair in early for record in pair]
        if order == "before":
            flat += [record for pair in late for record in pair]
        repository.import_records(flat, journal="j", at_us=at_us)
        close_after(engine, 2)
        if order == "together":
            records = [record for pair in late for record in pair]
            repository.import_records(records, journal="j", at_us=at_us)
        if order == "apart":
            for pair in late:
                repository.import_records(pair, journal="j", at_us=at_us)
        results.append(sums(engine))
        hour, _, balances = results[-1]
        assert [values[0] for values in hour.values()] == [RATE + 7] * 2
        assert balances["payable:gpu:chat"] == [-2 * (RATE + 7)]
    assert results[0] == results[1] == results[2]


def test_corrections_survive_a_downgrade_as_sums(engine, own, downgrade):
    contract(engine)
    repository = LedgerRepository(engine, host="h")
    close_after(engine, 1)
    for number, team in enumerate(("ads", "ads", "search")):
        late = own(number, team=team, engine_us=HOUR_US // 8, cost=1)
        repository.import_records(late, journal="j", at_us=DAY_US + 3 * HOUR_US)
    wanted = sums(engine)[0][DAY_US][:6]
    downgrade("0004")
    with engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT bill_pusd, used_pusd, idle_pusd, unavailable_pusd, busy_us, unavailable_us"
            " FROM gpu_hours"
        ).all()
        teams = connection.exec_driver_sql(
            "SELECT team_id, engine_us FROM gpu_hour_teams ORDER BY team_id"
        ).all()
    assert [list(row) for row in found] == [wanted]
    assert [tuple(row) for row in teams] == [("ads", HOUR_US // 4), ("search", HOUR_US // 8)]
