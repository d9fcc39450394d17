"""The options as a table: what is not entered or not allowed is said, never shown as zero."""

from rich.console import Console

from gateway.cli.verdict_table import comparators_table, options_table
from ledger.reports.report import ComparedLine

POOLS = [
    {
        "pool": "p",
        "options": [
            {"gpus": 0, "gpu_usd": "0.00", "ops_usd": "0.00", "api_usd": "328.59",
             "total_usd": None, "why_not": "contracts may not leave"},
            {"gpus": 1, "gpu_usd": "360.00", "ops_usd": None, "api_usd": "111.78",
             "total_usd": "471.78", "why_not": None},
        ],
    }
]  # fmt: skip


def test_each_option_is_a_row() -> None:
    console = Console(width=200, record=True)
    console.print(options_table(POOLS))
    text = console.export_text()
    for shown in ("contracts may not leave", "not entered", "471.78", "328.59"):
        assert shown in text


def test_what_apis_would_have_charged_is_a_row_each() -> None:
    console = Console(width=200, record=True)
    line = ComparedLine("chat", "openai/gpt-4o-mini", 0, 1_500_000, 12_000, scaled=False, pool="p1")
    console.print(comparators_table([line], lambda pusd: f"{pusd} pUSD"))
    text = console.export_text()
    for shown in ("p1", "openai/gpt-4o-mini", "12,000", "1500000 pUSD"):
        assert shown in text
