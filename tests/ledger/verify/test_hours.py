"""Closed hours are found wrong when a share, a posting or a settle is missing from them."""

from datetime import date

import pytest
from sqlalchemy import insert, text

from ledger.fleet.hours import GRACE_US, close_hours
from ledger.orm import tables as orm
from ledger.orm.fleet import HOUR_US
from ledger.verify.hours import hours_add_up, hours_hold_every_settle
from ledger.writing.repository import LedgerRepository

DAY_US = 1_779_926_400_000_000  # midnight of 2026-05-28 UTC


@pytest.fixture
def books(engine, opened, settled):
    """Two closed hours of a pool; the first one was corrected."""
    with engine.begin() as connection:
        contract = {
            "pool": "chat", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1,
            "billing": "reserved", "pusd_per_hour": 10**12, "since": date(2026, 5, 28),
            "recorded_us": DAY_US,
        }  # fmt: skip
        connection.execute(insert(orm.GpuContractRow), [contract])
    repository = LedgerRepository(engine, host="h")
    for number in range(2):
        records = (
            opened(number, backend="own", pool="chat", provider=None, holds=()),
            settled(number, cost_pusd=5, engine_us=7, settled_us=DAY_US + number),
        )
        repository.import_records(records, journal="j", at_us=DAY_US + 3 * HOUR_US)
        close_hours(engine, at_us=DAY_US + 2 * HOUR_US + GRACE_US)
    return engine


def findings(engine, check):
    with engine.connect() as connection:
        return [subject for subject, _ in check(connection)]


@pytest.mark.parametrize("check", [hours_add_up, hours_hold_every_settle])
def test_corrected_hours_are_sound(books, check):
    assert findings(books, check) == []


FIRST = f"gpu:chat:{DAY_US}"


@pytest.mark.parametrize(
    ("statement", "check", "subject"),
    [
        ("DELETE FROM gpu_hour_teams WHERE correction = 1", hours_add_up, f"{FIRST}:1"),
        ("DELETE FROM postings WHERE entry_id LIKE 'gpu%1'", hours_add_up, f"{FIRST}:1"),
        ("UPDATE gpu_hours SET idle_pusd = 0 WHERE correction = 1", hours_add_up, f"{FIRST}:1"),
        ("UPDATE gpu_hours SET bill_pusd = 3 WHERE correction = 0 AND used_pusd > 0",
         hours_add_up, FIRST),
        ("DELETE FROM gpu_hour_teams WHERE correction = 1", hours_hold_every_settle, FIRST),
        ("UPDATE attempts SET engine_us = 8 WHERE request_id = 'r1'",
         hours_hold_every_settle, FIRST),
        ("DELETE FROM attempts", hours_hold_every_settle, FIRST),
    ],
)  # fmt: skip
def test_what_is_broken_is_found(books, statement, check, subject):
    with books.begin() as connection:
        connection.execute(text(statement))
    assert subject in findings(books, check)
