"""Sums for charts and tables agree with the survey that they come from."""

from dataclasses import replace

import pytest

from dashboard import figures
from dashboard.data import reads
from ledger.economics.cost import TokenBasis
from ledger.queries.reads import DAY_US, AttemptCell, Scope, SpendPoint
from ledger.reports.survey import survey


@pytest.fixture(scope="module")
def look(month):
    engine = reads.open_readonly(month.url)
    scope = Scope(month.now_us - 30 * DAY_US, month.now_us)
    with engine.connect() as connection:
        yield survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)


def test_money_over_time_is_all_the_money(look) -> None:
    records = figures.money_over_time(look)
    ops = look.standing.fixed.ops_pusd
    assert ops
    total = figures.dollars(look.own_pusd + ops + look.api_pusd)
    assert sum(record["usd"] for record in records) == pytest.approx(total)
    assert all(record["at"] < record["until"] for record in records)


def test_over_time_adds_up_by_key(look) -> None:
    records = figures.records_over_time(
        look, lambda item: str(item.spilled), lambda item: float(item.attempts)
    )
    spilled = sum(cell.attempts for cell in look.cells if cell.spill_reason)
    assert spilled
    assert sum(record["value"] for record in records if record["kind"] == "True") == spilled
    assert sum(record["value"] for record in records) == sum(cell.attempts for cell in look.cells)


def test_what_was_spent_by_group_is_in_dollars(look) -> None:
    spent = [SpendPoint(0, "a", 2 * 10**12), SpendPoint(look.bucket_us, "b", 10**12)]
    records = figures.spent_over_time(look, spent)
    assert [(record["kind"], record["value"]) for record in records] == [("a", 2.0), ("b", 1.0)]
    assert records[0]["until"] == records[1]["at"]


def test_teams_bear_what_was_used_and_nothing_else(look) -> None:
    costs = figures.own_cost_by_team(look)
    assert sum(costs.values()) == sum(bill.used_pusd for bill in look.standing.bills)


def cell(**changes: object) -> AttemptCell:
    values = {
        "start_us": 0, "team": "a", "model": "m", "backend": "own", "target": "t", "pool": "p",
        "spill_reason": None, "status": "finished", "slo_met": True,
        "simulated": False, "attempts": 1, "input_tokens": 0, "cached_tokens": 0,
        "output_tokens": 0, "engine_us": 0, "cost_pusd": 0, "unpriced": 0,
    }  # fmt: skip
    return AttemptCell(**(values | changes))


def test_slo_share_counts_answers_whose_slo_is_known() -> None:
    cells = [
        cell(attempts=3),
        cell(attempts=1, slo_met=False),
        cell(attempts=50, slo_met=None),
        cell(attempts=70, status="upstream_error", slo_met=False),
        cell(attempts=4, backend="api", slo_met=False),
    ]
    assert figures.slo_share(cells, "own") == 0.75
    assert figures.slo_share(cells, "api") == 0
    assert figures.slo_share(cells, None) == 3 / 8
    assert figures.slo_share(cells[2:3], None) is None


def test_what_was_refused_is_said_beside_a_share_of_answers() -> None:
    cells = [cell(attempts=6), cell(attempts=1, slo_met=False), cell(attempts=5, slo_met=None)]
    assert figures.slo_share(cells, None, refused=5) == 0.5
    assert figures.refused_rows(cells, 0) == []
    assert figures.refused_rows(cells, 5) == [
        ("Refused, without an answer", "5", None),
        ("Inside the SLO, refused as missed", "50.0 %", None),
    ]


@pytest.mark.parametrize(
    ("amounts", "form"),
    [
        ([], "dollar"), ([None, 0.0], "dollar"), ([1200.0, 0.05], "dollar"),
        ([1.0, 0.003], "$%.4f"), ([0.22, 0.0064], "$%.4f"),
        ([None, 3.3e-8], "$%.9f"), ([1e-12], "$%.12f"),
    ],
)  # fmt: skip
def test_a_column_of_money_shows_its_least_amount(amounts, form) -> None:
    assert figures.money_format(amounts) == form


@pytest.mark.parametrize(
    ("amounts", "form"),
    [
        ([-0.00402, -0.99], "USD %.4f"), ([-3.0, 0.003], "USD %.4f"), ([-0.99, 5.0], "dollar"),
    ],
)  # fmt: skip
def test_no_minus_stands_behind_a_dollar_sign(amounts, form) -> None:
    """`$%.5f` showed `$-0.00402`. The preset puts the minus first, and has cents only."""
    assert figures.money_format(amounts) == form


def test_nothing_simulated_needs_no_label(look) -> None:
    assert figures.labels(look) == []


def test_pools_without_ops_are_named_beside_those_of_others(look) -> None:
    (row,) = figures.ops_rows(look)
    assert row[0] == "Ops of own GPUs"
    bill = look.standing.bills[0]
    bare = replace(bill, pool="vault", ops_pusd=0)
    standing = replace(look.standing, bills=(*look.standing.bills, bare))
    (row,) = figures.ops_rows(replace(look, standing=standing))
    assert row[0] == "Ops of own GPUs (not entered for vault)"
