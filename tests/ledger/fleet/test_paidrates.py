"""Entered rates become versions of contracts: over the file's, from their instant on."""

from dataclasses import replace
from datetime import date

import pytest
from msgspec.structs import asdict
from sqlalchemy import insert, select, update

from ledger.declared import DeclaredContract, declare
from ledger.fleet.hours import GRACE_US, HOUR_US, close_hours
from ledger.fleet.paidrates import GpuRate, carry_rates, read_rates
from ledger.manual_entries import RATE, ManualEntry, enter
from ledger.orm import tables as orm
from ledger.seals.audit_log import AuditLog, changes
from ledger.verify.checks import verify

DAY_US = 1_779_926_400_000_000  # midnight of 2026-05-28 UTC
FILE = DeclaredContract(
    pool="chat", gpu_type="H200", gpus_per_replica=1, replicas=2, billing="reserved",
    pusd_per_hour=None, source=None, since=date(2026, 5, 28), until=None,
    ops_seconds_per_week=0, ops_pusd_per_hour=0, simulated=False,
)  # fmt: skip
RATE_PUSD = 3_600_000_000_000


@pytest.fixture
def start(engine):
    """As a gateway's start declares its file."""

    def start(at_us: int, contract: DeclaredContract = FILE) -> None:
        declare(engine, contracts=[contract], budgets=(), config=("h", "t"), at_us=at_us)

    return start


@pytest.fixture
def say(engine):
    def say(pusd: int | None, at_us: int, from_us: int | None = None) -> None:
        rate = None if pusd is None else asdict(GpuRate(pusd, "contract 17", 3_600, 95 * 10**12))
        begins = at_us if from_us is None else from_us
        with engine.begin() as connection:
            enter(
                connection,
                ManualEntry(0, RATE + "chat", rate, begins, at_us, "fay", "new contract"),
            )
            carry_rates(connection, at_us)

    return say


def rates(engine) -> list[tuple[int | None, int]]:
    with engine.connect() as connection:
        query = select(orm.GpuContractRow.pusd_per_hour, orm.GpuContractRow.recorded_us)
        return [tuple(row) for row in connection.execute(query.order_by(orm.GpuContractRow.id))]


def test_a_rate_stands_over_the_file_also_after_a_start(engine, start, say) -> None:
    start(DAY_US)
    assert read_rates(engine) == {"chat": None}
    say(RATE_PUSD, DAY_US + 5)
    start(DAY_US + 9)
    assert rates(engine) == [(None, DAY_US), (RATE_PUSD, DAY_US + 5)]
    assert read_rates(engine) == {"chat": RATE_PUSD}
    with engine.connect() as connection:
        (row,) = connection.execute(
            select(orm.GpuContractRow).where(orm.GpuContractRow.id == 2)
        ).all()
    item = row[0] if len(row) == 1 else row
    assert (item.source, item.ops_seconds_per_week) == ("contract 17", 3_600)


def test_what_is_taken_back_is_the_files_again_at_the_next_start(engine, start, say) -> None:
    start(DAY_US)
    say(RATE_PUSD, DAY_US + 5)
    say(None, DAY_US + 6)
    assert read_rates(engine) == {"chat": RATE_PUSD}, "the control: nobody said what the file has"
    start(DAY_US + 9)
    assert read_rates(engine) == {"chat": None}


def test_hours_are_billed_by_what_had_begun_in_them(engine, start, say) -> None:
    start(DAY_US)
    say(RATE_PUSD, DAY_US + 5)
    tomorrow_us = DAY_US + 24 * HOUR_US
    say(2 * RATE_PUSD, DAY_US + 6, from_us=tomorrow_us)
    end_us = tomorrow_us + 2 * HOUR_US + GRACE_US
    with engine.begin() as connection:
        assert carry_rates(connection, tomorrow_us - 1) == 0
    with engine.begin() as connection:
        assert carry_rates(connection, end_us) == 1, "late, as after a writer that was away"
        assert carry_rates(connection, end_us) == 0
    while close_hours(engine, at_us=end_us):
        pass
    with engine.connect() as connection:
        query = select(orm.GpuHourRow.bill_pusd).order_by(orm.GpuHourRow.hour_us)
        bills = connection.execute(query).scalars().all()
    assert bills == [2 * RATE_PUSD] * 24 + [4 * RATE_PUSD] * 2


def test_the_registers_name_who_and_verify_finds_an_edit(engine, start, say) -> None:
    start(DAY_US)
    say(RATE_PUSD, DAY_US + 5)
    while AuditLog(engine).follow(at_us=DAY_US + 9):
        pass
    with engine.connect() as connection:
        (item,) = [change for change in changes(connection, 50) if change.register == "entered"]
        assert verify(connection).is_clean
    assert item.actor == "fay"
    assert ("note", None, "new contract") in item.fields
    for table, column in ((orm.ManualEntryRow, "actor"), (orm.GpuContractRow, "pusd_per_hour")):
        with engine.connect() as connection:
            value = "eve" if column == "actor" else 1
            connection.execute(update(table).values({column: value}))
            assert not verify(connection).is_clean
            connection.rollback()


def test_a_rate_of_a_pool_without_a_contract_waits(engine, say) -> None:
    say(RATE_PUSD, DAY_US)
    assert rates(engine) == []
    with engine.begin() as connection:
        row = {"pool": "other", "gpu_type": "L4", "gpus_per_replica": 1, "replicas": 1,
               "billing": "owned", "recorded_us": 1}  # fmt: skip
        connection.execute(insert(orm.GpuContractRow), [row])
        assert carry_rates(connection, DAY_US) == 0


def test_a_host_whose_clock_is_behind_does_not_bring_the_files_rate_back(
    engine, start, say
) -> None:
    """Red before: its start wrote the file's rate as a version, and no entry brought it back."""
    start(DAY_US)
    say(RATE_PUSD, DAY_US + 10)
    start(DAY_US + 5)
    assert read_rates(engine) == {"chat": RATE_PUSD}
    assert len(rates(engine)) == 2
    with engine.begin() as connection:
        assert carry_rates(connection, DAY_US + 6) == 0


def test_a_start_by_a_clock_that_is_behind_is_a_later_version(engine, start) -> None:
    """Red before: what was declared last was older, and each start wrote it once more."""
    start(DAY_US + 10)
    for _ in range(2):
        start(DAY_US + 5, replace(FILE, pusd_per_hour=RATE_PUSD))
    assert rates(engine) == [(None, DAY_US + 10), (RATE_PUSD, DAY_US + 10)]
