"""The share of hours for which GPUs on demand were billed, at the rates of those hours."""

from fractions import Fraction

import pytest
from sqlalchemy import insert

from ledger.economics.cost import TokenBasis
from ledger.orm import tables as orm
from ledger.reports.survey import survey
from ledger.spans import DAY_US, HOUR_US, Scope

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
END_US = START_US + 10 * DAY_US
USD = 10**12
GPUS = 4


def contract(pool: str, usd: int, recorded_us: int, **changes: object) -> dict[str, object]:
    return {
        "pool": pool, "gpu_type": "H200", "gpus_per_replica": 2, "replicas": GPUS // 2,
        "billing": "on_demand", "pusd_per_hour": usd * USD, "ops_seconds_per_week": 0,
        "ops_pusd_per_hour": 0, "simulated": False, "recorded_us": recorded_us, **changes,
    }  # fmt: skip


@pytest.fixture
def shares(engine):
    """Write ten days of closed hours at their bills, and read each pool's share in the verdict."""

    def read(contracts, bills) -> dict[str, Fraction]:
        rows = [
            {
                "pool": pool, "hour_us": hour_us, "contract_id": contract_id, "replicas": GPUS // 2,
                "bill_pusd": bill, "used_pusd": 0, "idle_pusd": bill, "unavailable_pusd": 0,
                "busy_us": 0, "unavailable_us": 0, "closed_us": 1,
            }
            for hour_us in range(START_US, END_US, HOUR_US)
            for pool, contract_id, bill in bills(hour_us)
        ]  # fmt: skip
        with engine.begin() as connection:
            connection.execute(insert(orm.GpuContractRow), contracts)
            connection.execute(insert(orm.GpuHourRow), rows)
        with engine.connect() as connection:
            scope, basis = Scope(START_US, END_US), TokenBasis.INPUT_OUTPUT
            whole = survey(connection, scope, bucket_us=DAY_US, basis=basis)
        found = whole.verdict
        assert found is not None
        shares = {pool.pool: pool.billed_share for pool in found.sheet.pools}
        assert {bill.pool: bill.billed_share for bill in whole.standing.bills} == shares
        return shares

    return read


def test_each_hour_counts_at_its_own_rate(shares) -> None:
    """On demand from 8 to 20 o'clock, for half of the days at twice the rate; another is kept."""
    middle = START_US + 5 * DAY_US

    def bills(hour_us: int):
        dear = hour_us < middle
        runs = 8 <= hour_us % DAY_US // HOUR_US < 20
        yield "night", 1 if dear else 3, (2 if dear else 1) * GPUS * USD if runs else 0
        yield "kept", 2, GPUS * USD

    found = shares(
        [
            contract("night", 2, START_US),
            contract("kept", 1, START_US, billing="reserved"),
            contract("night", 1, middle),
        ],
        bills,
    )
    assert found == {"night": Fraction(1, 2), "kept": 1}


def test_hours_that_were_free_tell_no_share(shares) -> None:
    found = shares([contract("night", 0, START_US)], lambda _: [("night", 1, 0)])
    assert found == {"night": 1}
