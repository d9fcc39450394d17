"""Text of a recorded attempt: caller, routing reason, outcome and cost."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from ledger.identity.keys import BATCH_TAG
from ledger.money import usd_exact, usd_text
from ledger.orm.books import AttemptRow, token_column
from ledger.queries.claims import claimed_column
from ledger.spans import INPUT_TOKENS, OUTPUT_TOKENS
from router.reasons import REASONS

COLUMNS = (
    AttemptRow.attempt_no,
    AttemptRow.opened_us,
    AttemptRow.model,
    AttemptRow.team_id,
    AttemptRow.key_id,
    AttemptRow.tags,
    AttemptRow.policy,
    AttemptRow.reason,
    AttemptRow.spill_reason,
    AttemptRow.http_status,
    AttemptRow.error,
    AttemptRow.ttft_us,
    AttemptRow.duration_us,
    AttemptRow.slo_met,
    AttemptRow.cost_pusd,
    AttemptRow.basis,
    INPUT_TOKENS.label("read_tokens"),
    token_column("cached"),
    OUTPUT_TOKENS.label("written_tokens"),
    claimed_column().label("claimed_pusd"),
)
_EXPLAINED: Mapping[str, str] = {
    reason: traits.explained for reason, traits in REASONS.items() if traits.explained is not None
}


def document(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    """Return the values of the text for programs."""
    return {
        "opened_us": row.opened_us,
        "model": row.model,
        "team_id": row.team_id,
        "key_id": row.key_id,
        "tags": row.tags or {},
        "policy": row.policy,
        "reason": row.reason,
        "spill_reason": row.spill_reason,
        "http_status": row.http_status,
        "error": row.error,
        "ttft_us": row.ttft_us,
        "duration_us": row.duration_us,
        "slo_met": row.slo_met,
        "input_tokens": row.read_tokens,
        "cached_tokens": row.cached_tokens,
        "output_tokens": row.written_tokens,
        "cost_usd": None if row.cost_pusd is None else usd_exact(row.cost_pusd),
        "basis": row.basis,
        "claimed_usd": None if row.claimed_pusd is None else usd_exact(row.claimed_pusd),
    }


def explain_attempt(row: Row[*tuple[Any, ...]], before: Row[*tuple[Any, ...]] | None) -> list[str]:
    """Return the lines of an attempt; `before` is the failed attempt before it."""
    found = [_request_line(row)] if before is None else []
    found.append(_routing_line(row, before))
    if row.duration_us is not None:
        found += [_came(row), _cost(row)]
    return found


def _request_line(row: Row[*tuple[Any, ...]]) -> str:
    at = f"{datetime.fromtimestamp(row.opened_us / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
    tags = dict(row.tags or {})
    line = tags.pop(BATCH_TAG, None)
    marked = "".join(f", {name}={value}" for name, value in sorted(tags.items()))
    of_batch = "" if line is None else f", a line of {line}"
    return f"asked {at} for {row.model} by key {row.key_id} of team {row.team_id}{marked}{of_batch}"


def _routing_line(row: Row[*tuple[Any, ...]], before: Row[*tuple[Any, ...]] | None) -> str:
    if before is not None:
        why = f"the next in order, for {before.target} failed: {_ending(before)}"
    else:
        why = _meant(row.reason)
    spilled = "" if row.spill_reason is None else f"; no own engine: {_meant(row.spill_reason)}"
    return f"went there by policy {row.policy}: {why}{spilled}"


def _meant(reason: str) -> str:
    meaning = _EXPLAINED.get(reason)
    return reason if meaning is None else f"{reason} ({meaning})"


def _came(row: Row[*tuple[Any, ...]]) -> str:
    first = "" if row.ttft_us is None else f", the first token after {row.ttft_us / 1e3:.0f} ms"
    kept = {None: "", True: ", within its SLO", False: ", its SLO missed"}[row.slo_met]
    return f"{_ending(row)} after {row.duration_us / 1e3:.0f} ms{first}{kept}"


def _ending(row: Row[*tuple[Any, ...]]) -> str:
    """Return the outcome, as `finished (200)` or `upstream_error: server_error (500)`."""
    error = "" if row.error is None else f": {row.error}"
    status = "" if not row.http_status else f" ({row.http_status})"
    return f"{row.status}{error}{status}"


def _cost(row: Row[*tuple[Any, ...]]) -> str:
    cached = f" ({row.cached_tokens} cached)" if row.cached_tokens else ""
    cost = "unpriced" if row.cost_pusd is None else usd_text(row.cost_pusd)
    tokens = f"{row.read_tokens} tokens in{cached}, {row.written_tokens} out"
    claimed = ""
    if row.claimed_pusd is not None:
        claimed = f"; its provider claims {usd_text(row.claimed_pusd)}, in dispute"
    return f"{tokens}: {cost}, {row.basis}{claimed}"
