"""The sentence of what a period cost names each part, and what is known to be missing."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
from rich.console import Console

from gateway.cli.report_tables import cost_sentence, evens_table
from ledger.reports.daily import DaySpend
from ledger.reports.month_even import MonthEven

USD = 10**12


def report(**changes):
    days = [DaySpend(0, 1, 3 * USD, 0, 2 * USD, 0, -USD), DaySpend(1, 2, USD, 0, 0, USD // 2)]
    told = {
        "team": None, "days": days, "total_pusd": sum(day.total_pusd for day in days),
        "unrated": (), "total": SimpleNamespace(unpriced=0),
    }  # fmt: skip
    return SimpleNamespace(**(told | changes))


def test_parts_are_named_and_add_up() -> None:
    assert cost_sentence(report()) == (
        "All of it cost $5.5000: $4.0000 at APIs, $2.0000 for idle and unavailable time "
        "of own GPUs, "
        "$0.5000 of ops, -$1.0000 of adjustments to bills."
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"unrated": ("chat",)}, " Not in it: no GPU rate is known for chat."),
        ({"total": SimpleNamespace(unpriced=2)}, " Not in it: 2 attempts have no price."),
        ({"days": [], "total_pusd": 0, "team": "ads"}, "All that ads used cost $0.0000."),
    ],
)
def test_what_is_not_known_is_said(changes, said) -> None:
    assert cost_sentence(report(**changes)).endswith(said)


def test_break_even_volumes_are_rows() -> None:
    console = Console(width=200, record=True)
    lines = [
        MonthEven("p", "substitute model", ("a/x",), Fraction(10**6), Fraction(2 * 10**6),
                  Fraction(4)),
        MonthEven("q", "same weights elsewhere", ("b/y",), None, None, Fraction(0)),
    ]  # fmt: skip
    console.print(evens_table(lines))
    text = console.export_text()
    for shown in ("1,000,000", "2,000,000", "not reached", "a/x", "nothing was served"):
        assert shown in text
