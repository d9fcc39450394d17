"""The verdict's options as a table of the terminal."""

from collections.abc import Sequence
from typing import Any

from gateway.cli.output import table


def options_table(pools: Sequence[dict[str, Any]]) -> object:
    """Every number of GPUs of every pool, as the verdict has it."""
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
