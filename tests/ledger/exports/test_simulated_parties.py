"""Adjustments of simulated parties say so in FOCUS, and those of real ones do not."""

from datetime import date

import pytest
from sqlalchemy import insert

from ledger.exports.focus import focus_rows
from ledger.exports.focus_columns import FOCUS_1_4
from ledger.exports.simulated_parties import is_simulated
from ledger.orm import tables as orm
from ledger.spans import DAY_US, Scope
from ledger.writing.repository import LedgerRepository

START_US = 1_780_012_800_000_000 - 1_780_012_800_000_000 % DAY_US
LAST_US = START_US + DAY_US - 1
NAMES = [column.name for column in FOCUS_1_4.columns]


@pytest.fixture
def books(engine, opened, settled):
    """`play` is simulated; `turned` was, and is real on the day; `real` is."""
    records = []
    rows = [
        ("play", True, START_US), ("turned", True, START_US - DAY_US),
        ("turned", False, START_US), ("real", False, START_US),
    ]  # fmt: skip
    for number, (provider, simulated, at_us) in enumerate(rows):
        where = {"provider": provider, "target": f"{provider}/m", "simulated": simulated}
        records.append(opened(number, opened_us=at_us, backend="api", pool=None, **where))
        records.append(settled(number, settled_us=at_us + 1))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=LAST_US)
    contract = {
        "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 1, "billing": "reserved",
        "pusd_per_hour": 1, "since": date(2026, 1, 1), "recorded_us": 0,
    }  # fmt: skip
    with engine.begin() as connection:
        for pool, simulated in (("toy", True), ("own", False)):
            values = contract | {"pool": pool, "simulated": simulated}
            connection.execute(insert(orm.GpuContractRow), values)
    return engine


@pytest.mark.parametrize(
    ("party", "days", "wanted"),
    [
        ("provider:play", 0, True), ("provider:play", 9, True), ("provider:turned", 0, False),
        ("provider:turned", -1, True), ("provider:real", 0, False), ("provider:pla", 0, False),
        ("gpu:toy", 0, True), ("gpu:own", 0, False), ("gpu:none", 0, False),
    ],
)  # fmt: skip
def test_a_party_is_simulated_by_its_attempts_or_contract(books, party, days, wanted) -> None:
    with books.connect() as connection:
        assert is_simulated(connection, party, LAST_US + days * DAY_US) is wanted


def test_the_rows_of_focus_say_it(books, adjust) -> None:
    for account in ("play", "real", "gpu:toy", "gpu:own"):
        adjust(books, account, LAST_US, -5)
    scope = Scope(START_US, START_US + DAY_US)
    with books.connect() as connection:
        rows = list(focus_rows(connection, scope, lambda _: None, period_us=DAY_US))
    told = [dict(zip(NAMES, row, strict=True)) for row in rows]
    adjusted = {
        row["ChargeDescription"].rpartition(" ")[2]: row["x_Simulated"]
        for row in told
        if row["x_Bearer"] == "adjustments"
    }
    assert adjusted == {"play": True, "real": False, "toy": True, "own": False}
