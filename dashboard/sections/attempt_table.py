"""Single requests as rows of a table."""

from typing import Any

from dashboard import formatting
from dashboard.figures import shown_amount
from ledger.queries.reads import AttemptDetail

MONEY = ("cost", "at the comparator", "claimed")  # columns


def _amount(pusd: int | None) -> Any:
    return None if pusd is None else shown_amount(pusd)


def attempt_rows(found: list[AttemptDetail]) -> list[dict[str, Any]]:
    """Return the table's rows; the column of claims exists only if there are claims."""
    claims = any(row.claimed_pusd is not None for row in found)
    return [
        {
            formatting.zoned("at"): formatting.instant(row.opened_us),
            "team": row.team,
            "cost": _amount(row.cost_pusd),
            "model": row.model,
            "went to": row.target,
            "input": row.input_tokens,
            "output": row.output_tokens,
            "at the comparator": _amount(row.compared_pusd),
            "why": formatting.reason(row.spill_reason or row.reason),
            "first token, s": None if row.ttft_us is None else row.ttft_us / 1e6,
            "status": row.status or "open",
            **({"claimed": _amount(row.claimed_pusd)} if claims else {}),
            "flag": row.flag or "",
            "request": row.request_id,
        }
        for row in found
    ]
