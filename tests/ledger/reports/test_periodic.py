"""What the sent report says is what `ledger report` and the pages say of the same period."""

import json

import pytest
from sqlalchemy import insert

from ledger.budgets.entered import BudgetSpec
from ledger.budgets.windows import window_at
from ledger.declared import declare
from ledger.economics.verdict_text import sentence
from ledger.journals.records import TokenCounts
from ledger.orm import tables as orm
from ledger.reporting_zone import ReportingZone
from ledger.reports.periodic import periodic_report
from ledger.reports.verdict_read import read_verdict
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.writing.repository import LedgerRepository

USD = 10**12
DAYS, USUAL, BURST = 28, 5, 60  # dollars a day, and on the last day
END_US = 1_780_012_800_000_000 - 1_780_012_800_000_000 % DAY_US
ZONE = ReportingZone()


@pytest.fixture
def filled(engine, opened, settled):
    records = []
    for day in range(DAYS):
        at_us = END_US - (DAYS - day) * DAY_US + HOUR_US
        cost = BURST if day == DAYS - 1 else USUAL
        records.append(opened(day, opened_us=at_us, model="chat", target="a/chat", team_id="search",
                              backend="api", pool=None))  # fmt: skip
        records.append(
            settled(day, settled_us=at_us + 1, tokens=TokenCounts(input=9, output=1),
                    cost_pusd=cost * USD)
        )  # fmt: skip
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=END_US)
    with engine.begin() as connection:
        connection.execute(
            insert(orm.GpuContractRow),
            {"pool": "p", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 2,
             "billing": "reserved", "pusd_per_hour": USD // 2, "ops_seconds_per_week": 0,
             "ops_pusd_per_hour": 0, "simulated": True, "recorded_us": END_US - DAYS * DAY_US},
        )  # fmt: skip
    return engine


def made(engine, days: int, zone: ReportingZone = ZONE):
    scope = Scope(END_US - days * DAY_US, END_US)
    with engine.connect() as connection:
        return periodic_report(connection, scope, zone, END_US + HOUR_US), read_verdict(
            connection, scope
        )


def test_the_verdict_is_the_one_of_every_other_place(filled) -> None:
    found, judged = made(filled, 7)
    assert sentence(judged.verdict) in found.text()
    assert found.described()["verdict"] == judged.described()["verdict"]
    assert found.described()["books"] == judged.books
    json.dumps(found.described())


def test_simulated_parts_and_unknown_ops_are_said(filled) -> None:
    text = made(filled, 7)[0].text()
    assert "SIMULATED" in text
    assert "ops of pool p: not known" in text
    assert "ops not entered" in text


def test_what_moved_and_what_stands_out_is_told_with_its_day(filled) -> None:
    found, _ = made(filled, 7)
    (moved,) = found.described()["moved"]["team"]
    assert moved == {"name": "search", "before_usd": "35.00", "now_usd": "90.00"}
    (item,) = found.unusual["team"]
    assert (item.pusd, item.usual_pusd) == (BURST * USD, USUAL * USD)
    assert f"Unusual, team search: $60.00 on {ZONE.date_of(END_US - 1):%d %b} (usual $5.00)" in (
        found.text()
    )
    assert found.is_unusual


def test_a_burst_before_the_period_is_not_told_again(filled) -> None:
    scope = Scope(END_US, END_US + DAY_US)
    with filled.connect() as connection:
        found = periodic_report(connection, scope, ZONE, END_US + DAY_US + 1)
    assert not found.is_unusual
    assert "Nothing stands out" in found.text()


def test_without_the_period_before_nothing_is_compared(filled) -> None:
    found, _ = made(filled, 20)
    assert found.moved is None
    assert "too little of the period before" in found.text()
    assert found.described()["moved"] is None


def test_a_month_moved_against_the_month_before(filled) -> None:
    """June has 30 days, and was compared with the last 30 of May."""
    start_us, end_us = ZONE.month_named("2026-06")
    with filled.connect() as connection:
        found = periodic_report(connection, Scope(start_us, end_us), ZONE, end_us)
    (moved,) = found.described()["moved"]["team"]
    assert moved["before_usd"] == f"{USUAL * (DAYS - 1) + BURST}.00"


def test_a_period_is_named_by_its_days_and_zone(filled) -> None:
    last = ZONE.date_of(END_US - 1)
    assert made(filled, 1)[0].title == f"{last:%d %b %Y} (UTC)"
    assert made(filled, 7)[0].title.endswith(f"to {last:%d %b %Y} (UTC)")


def test_runs_stand_behind_budgets_however_many_are_exhausted(filled) -> None:
    """Red before: five exhausted runs were all that a report said of budgets."""
    now_us = END_US + HOUR_US
    specs = [BudgetSpec("team:search", "day", 10 * USD, hard=True, timezone="UTC"),
             BudgetSpec("tag:run=*", "day", USD, hard=True, timezone="UTC")]  # fmt: skip
    declare(filled, contracts=(), budgets=specs, config=("c", "c"), at_us=now_us)
    day = window_at("day", "UTC", now_us // 10**6).start_s
    rows = [{"budget_id": f"tag:run={n}@day", "window": day, "spent_pusd": USD, "granted_pusd": 0}
            for n in range(9)]  # fmt: skip
    with filled.begin() as connection:
        connection.execute(insert(orm.BudgetWindowRow), rows)
    report, _ = made(filled, 1)
    told = [(line["scope"], line.get("values")) for line in report.described()["budgets"]]
    assert told == [("team:search", None), ("tag:run=*", 9)]
    words = "Budget tag:run=* this day: 9 values used $9.00, 9 of them all of their $1.00"
    assert words in report.text()


def test_adjustments_to_bills_are_named_beside_what_was_spent(filled, adjust) -> None:
    before, _ = made(filled, 7)
    assert "adjustments" not in before.text()
    adjust(filled, "a", END_US - DAY_US, -3 * USD // 2)
    found, judged = made(filled, 7)
    assert "for own engines, ops not entered, -$1.50 of adjustments to bills." in found.text()
    assert judged.adjusted_pusd == -3 * USD // 2
    assert found.described()["adjustments_usd"] == "-1.50"


def test_a_period_that_the_books_cover_in_part_is_said(filled) -> None:
    found, judged = made(filled, 7)
    assert judged.coverage_note is None
    assert "of the period's" not in found.text()
    found, judged = made(filled, 2 * DAYS)
    assert judged.coverage_note == (
        "It is judged from 672.0 of the period's 1,344 hours: the books have no more of own GPUs."
    )
    assert f"\n{judged.coverage_note}\n" in found.text()
    assert found.described()["coverage"] == judged.coverage_note


def test_the_month_under_way_has_a_line_of_its_own(filled) -> None:
    lines = made(filled, 7)[0].text().splitlines()
    (spent,) = [line for line in lines if line.startswith("Spent: ")]
    assert "so far" not in spent
    assert any(line.startswith("The month under way: ") for line in lines)
