"""Terminal tables of a verdict: its options, and what APIs would have charged."""

from collections.abc import Callable, Sequence
from typing import Any

from gateway.cli.output import table
from ledger.reports.report import ComparedLine


def options_table(pools: Sequence[dict[str, Any]]) -> object:
    """Return a table with every number of GPUs of every pool."""
    cells = [
        [
            pool["pool"], str(option["gpus"]), option["gpu_usd"],
            option["ops_usd"] or "not entered", option["api_usd"] or "-",
            option["total_usd"] or "-", option["why_not"] or "",
        ]
        for pool in pools
        for option in pool["options"]
    ]  # fmt: skip
    columns = ("pool", ">GPUs", ">GPU cost", ">ops", ">APIs", ">total", "not allowed")
    return table("Options, USD a month from now on", columns, cells)


def comparators_table(comparators: Sequence[ComparedLine], money: Callable[[int], str]) -> object:
    """Return what each API would have charged within the SLO; `money` formats pico-USD."""
    cells = [
        [line.model, line.pool, line.comparator, f"{line.tokens:,}", money(line.avoided_pusd)]
        for line in comparators
    ]
    columns = ("model", "pool", "comparator", ">tokens, input + output", ">would have cost")
    return table("What own engines served inside the SLO, at API prices", columns, cells)
