"""The verdict as CSV: its options row by row, unknown ops empty, and the label in every row."""

import csv
import io
from fractions import Fraction

from ledger.economics.assumptions import AssumptionSheet, PoolAssumptions
from ledger.economics.fleet_verdict import judge
from ledger.economics.value_curve import TrafficClass, TrafficWindow, ValueCurve
from ledger.economics.verdict_text import sentence
from ledger.exports.verdict import COLUMNS, verdict_csv
from ledger.money import PUSD_PER_USD
from ledger.reports.month_even import MonthEven


def test_each_option_is_a_row_and_a_pool_without_a_verdict_says_why() -> None:
    pool = PoolAssumptions("p", 2, Fraction(720), PUSD_PER_USD // 2, capacity_per_minute=10_000)
    bare = PoolAssumptions("q", 1, Fraction(720), None)
    traffic = (TrafficClass("chat", 2_000_000, True), TrafficClass("inside", None, False))
    windows = (TrafficWindow((17_000, 3_000), (0, 0), 10_800),)
    found = judge(
        AssumptionSheet((pool, bare)),
        {
            "p": ValueCurve(traffic, windows, 2, 10_000, (0, 0)),
            "q": ValueCurve((), (), 1, None, ()),
        },
    )
    rows = list(csv.DictReader(io.StringIO(verdict_csv(found, simulated=True))))
    assert list(rows[0]) == [column.name for column in COLUMNS]
    assert [row["pool"] for row in rows] == ["p"] * 4 + ["q"]
    assert rows[0]["why_not"] == "inside may not leave"
    assert rows[1]["ops_usd"] == "", "not entered is not zero"
    assert rows[1]["gpu_usd"].startswith("360.00")
    assert rows[-1]["why_not"] == "enter your GPU rate"
    assert {row["simulated"] for row in rows} == {"true"}
    assert {row["sentence"] for row in rows} == {sentence(found)}
    assert [row["is_best"] for row in rows[:4]].count("true") == 1
    assert {float(row["judged_hours"]) for row in rows} == {720}


def test_break_even_volumes_stand_in_the_rows_of_their_pool() -> None:
    pool = PoolAssumptions("p", 1, Fraction(720), None)
    found = judge(AssumptionSheet((pool,)), {"p": ValueCurve((), (), 1, None, ())})
    lines = [
        MonthEven("p", "substitute model", ("a/x",), Fraction(11, 2), Fraction(30), Fraction(4)),
        MonthEven("q", "substitute model", ("a/x",), Fraction(7), None, Fraction(4)),
    ]
    (row,) = csv.DictReader(io.StringIO(verdict_csv(found, simulated=False, even=lines)))
    assert row["break_even_tokens"] == "6", "of the substitute; rounded up: fewer do not pay"
    assert row["break_even_state"] == "not reached"
    assert row["same_weights_break_even_tokens"] == "", "not known is not zero"
    (row,) = csv.DictReader(io.StringIO(verdict_csv(found, simulated=False)))
    assert row["break_even_tokens"] == ""
