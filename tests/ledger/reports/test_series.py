"""Money over time adds up to the totals, whatever the buckets and wherever hours are closed."""

import pytest
from sqlalchemy import insert

from ledger.economics.cost import TokenBasis
from ledger.orm import tables as orm
from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.reports.series import SpendAmount, SpendSeries, spend
from ledger.reports.survey import survey
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
NOW_US = START_US + 5 * HOUR_US + 17 * MINUTE_US
RATE = 3_333_333_333_333


@pytest.fixture
def books(engine, opened, settled):
    """Three closed hours with a split, two and a bit open ones with charges, some API spend."""
    records = []
    for n in range(40):
        own = n % 3 != 0
        at_us = START_US + n * 7 * MINUTE_US
        target = {"pool": "llama", "target": "pool:llama/0"} if own else {}
        records.append(opened(n, opened_us=at_us, backend="own" if own else "api", **target))
        records.append(settled(n, settled_us=at_us + 1, cost_pusd=10**11 + n))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOW_US)
    contract = {
        "pool": "llama", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
        "billing": "reserved", "pusd_per_hour": RATE, "ops_seconds_per_week": 0,
        "ops_pusd_per_hour": 0, "simulated": False, "recorded_us": START_US,
    }  # fmt: skip
    hours = [
        {
            "pool": "llama", "hour_us": START_US + n * HOUR_US, "contract_id": 1, "replicas": 1,
            "bill_pusd": RATE, "used_pusd": 1_000, "idle_pusd": RATE - 1_500,
            "unavailable_pusd": 500, "busy_us": 1, "unavailable_us": 1, "closed_us": 0,
        }
        for n in range(3)
    ]  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), contract)
        connection.execute(insert(orm.GpuHourRow), hours)
    return engine


@pytest.mark.parametrize("bucket_us", [MINUTE_US, 10 * MINUTE_US, HOUR_US, DAY_US])
def test_lines_add_up_to_the_totals(books, bucket_us: int) -> None:
    scope = Scope(START_US, NOW_US)
    with books.connect() as connection:
        look = survey(connection, scope, bucket_us=bucket_us, basis=TokenBasis.OUTPUT)
    amounts = spend(look)
    totals = {
        line: sum(amount.pusd for amount in amounts if amount.line is line) for line in SpendSeries
    }
    (bill,) = look.standing.bills
    assert totals[SpendSeries.USED] == bill.used_pusd
    assert totals[SpendSeries.IDLE] == bill.idle_pusd
    assert totals[SpendSeries.UNAVAILABLE] == bill.unavailable_pusd == 1_500
    assert totals[SpendSeries.API] == look.api_pusd
    assert sum(totals.values()) == look.own_pusd + look.api_pusd
    assert all(amount.pusd > 0 for amount in amounts)
    assert [amount.start_us for amount in amounts] == sorted(amount.start_us for amount in amounts)


def test_closed_hours_keep_their_own_split(books) -> None:
    with books.connect() as connection:
        look = survey(
            connection, Scope(START_US, NOW_US), bucket_us=HOUR_US, basis=TokenBasis.OUTPUT
        )
    first = [
        item
        for item in spend(look)
        if item.start_us == START_US and item.line is not SpendSeries.API
    ]
    assert first == [
        SpendAmount(START_US, SpendSeries.IDLE, RATE - 1_500),
        SpendAmount(START_US, SpendSeries.UNAVAILABLE, 500),
        SpendAmount(START_US, SpendSeries.USED, 1_000),
    ]


@pytest.mark.parametrize("bucket_us", [HOUR_US, DAY_US])
def test_adjustments_are_a_line_of_everyone(books, adjust, bucket_us: int) -> None:
    adjust(books, "openai", START_US + 2 * HOUR_US, -500)
    adjust(books, "openai", START_US + DAY_US, -7)  # of a later day
    with books.connect() as connection:
        look, team = (
            survey(connection, scope, bucket_us=bucket_us, basis=TokenBasis.OUTPUT)
            for scope in (Scope(START_US, NOW_US), Scope(START_US, NOW_US, "search"))
        )
    adjusted = [item for item in spend(look) if item.line is SpendSeries.ADJUSTED]
    start_us = look.bucket_of(START_US + 2 * HOUR_US)[0]
    assert adjusted == [SpendAmount(start_us, SpendSeries.ADJUSTED, -500)]
    assert (look.adjusted_pusd, team.adjusted_pusd, team.adjustments) == (-500, 0, ())
    assert sum(item.pusd for item in spend(look)) == look.own_pusd + look.api_pusd - 500
