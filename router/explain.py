"""Decisions as a header value, a dict and a table, for people and other programs.

`pack` and `unpack` convert a decision to and from the form stored in the ledger.
"""

from math import isfinite
from operator import attrgetter
from typing import Any

from router.packed import NUMBERS, pack, pack_bounded, unpack
from router.reasons import REASONS
from router.types import Decision, InfeasibleAction, Verdict

__all__ = ["as_dict", "as_lines", "pack", "pack_bounded", "short", "unpack"]

PUSD_PER_MICRO_USD = 10**6
PUSD_PER_USD = 10**12
TITLES = (
    "candidate", "answer", "ttft ms", "tpot ms", "kv", "z", "miss",
    "engine ms", "usd/engine-h", "objective uUSD", "most uUSD",
)  # fmt: skip
_OTHERWISE = {  # what a policy does if no target is feasible
    InfeasibleAction.REJECT: "the policy rejects it (`otherwise: reject`)",
    InfeasibleAction.QUEUE: "the policy lets it wait for room (`otherwise: queue`)",
    InfeasibleAction.BEST_EFFORT: "the policy would try one (`otherwise: best_effort`), and no "
    "target may be tried",
}


def short(decision: Decision) -> str:
    """Return the response header value: kind of target, reason, and the numbers that decided."""
    chosen = decision.first_choice
    if chosen is None:
        return f"none:{decision.reason} otherwise={decision.otherwise}"
    own = chosen.candidate.engine is not None
    words = [f"{'own' if own else 'api'}:{chosen.reason}"]
    if chosen.prefill is not None:
        words.append(f"prefill={chosen.prefill.name}")
    for label, number, form in (
        ("ttft", chosen.ttft_ms, ".0f"),
        ("kv", chosen.kv_ratio, ".2f"),
        ("z", chosen.load, ".2f"),
        ("miss", None if own else chosen.miss_probability, ".2f"),
    ):
        if number is not None and isfinite(number):
            words.append(f"{label}={number:{form}}{'ms' if label == 'ttft' else ''}")
    return " ".join([*words, *_caches(decision, chosen)])


def _caches(decision: Decision, chosen: Verdict) -> list[str]:
    """Return the tokens cached at the chosen API, else those at the API that saves the most."""
    if chosen.candidate.cached_tokens:
        return [f"cached={chosen.candidate.cached_tokens}"]
    warm = [row[0] for row in decision.verdicts if row[0].cache_saves_pusd and row.feasible]
    if not warm:
        return []
    warmest = max(warm, key=attrgetter("cache_saves_pusd"))
    dollars = f"{warmest.cache_saves_pusd / PUSD_PER_USD:.6f}".rstrip("0").rstrip(".")
    return [f"leaves={warmest.cached_tokens}@{warmest.name}(${dollars})"]


def as_dict(decision: Decision) -> dict[str, Any]:
    """Return a JSON value with reason and numbers of every candidate; infinity is `None`."""
    chosen = decision.first_choice
    return {
        "policy": decision.policy,
        "chosen": None if chosen is None else chosen.candidate.name,
        "reason": decision.reason.value,
        "otherwise": decision.otherwise.value,
        "order": [verdict.candidate.name for verdict in decision.order],
        "candidates": [
            {
                "name": verdict.candidate.name,
                "pool": verdict.candidate.pool,
                "own": verdict.candidate.engine is not None,
                "feasible": verdict.feasible,
                "reason": verdict.reason.value,
                "detail": verdict.detail,
                "output_cap_tokens": verdict.candidate.output_cap,
                "bound_pusd": verdict.candidate.bound_pusd,
                "cached_tokens": verdict.candidate.cached_tokens,
                "cache_saves_pusd": verdict.candidate.cache_saves_pusd,
                **({} if verdict.prefill is None else {"prefill": verdict.prefill._asdict()}),
                **(_kv(verdict) if verdict.candidate.engine else {}),
                **{name: _finite(getattr(verdict, name)) for name in NUMBERS},
            }
            for verdict in decision.verdicts
        ],
    }


def as_lines(decision: Decision, *, has_later_stage: bool = False) -> list[str]:
    """Return a table: one line for each candidate in order, the chosen one marked with `*`.

    `has_later_stage` says that targets of a later stage are considered next. The policy's
    `otherwise` then does not act on this decision and is left out.
    """
    rows = [TITLES, *(_row(verdict) for verdict in decision.verdicts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES))]
    details = ["", *map(_detail, decision.verdicts)]
    passes_on = has_later_stage and not decision.order
    head = short(decision)
    if not decision.order:
        head = f"no target is feasible: {REASONS[decision.reason].sentence} ({decision.reason})"
    lines = [f"policy {decision.policy}: {head}"]
    for place, (row, detail) in enumerate(zip(rows, details, strict=True)):
        mark = "*" if place == 1 and decision.order else " "
        names = (cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True))
        numbers = (cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True))
        lines.append(f"{mark} {'  '.join((*names, *numbers))}  {detail}".rstrip())
    if passes_on:
        lines.append("the later stages are considered")
    elif not decision.order:
        lines.append(_OTHERWISE[decision.otherwise])
    return lines


def _detail(verdict: Verdict) -> str:
    cap = verdict.candidate.output_cap
    capped = "" if cap is None else f"capped at {cap} output tokens"
    read = "" if verdict.prefill is None else f"prompt read by {verdict.prefill.name}"
    return "; ".join(filter(None, (verdict.detail, read, capped)))


def _kv(verdict: Verdict) -> dict[str, Any]:
    """Return the KV ratio's components: free, used and promised tokens, and resident prefixes."""
    engine = verdict.candidate.engine
    assert engine is not None
    return {
        "kv_promise_tokens": verdict.kv_promise_tokens,
        "kv_free_tokens": _finite(verdict.kv_free_tokens),
        "kv_used_tokens": _finite(engine.kv_used_tokens),
        "kv_promised_tokens": _finite(engine.kv_promised_tokens),
        "residents": [list(resident) for resident in engine.residents],
    }


def _row(verdict: Verdict) -> tuple[str, ...]:
    bound = verdict.candidate.bound_pusd
    seconds, density, objective = (
        verdict.engine_seconds,
        verdict.density_pusd_per_s,
        verdict.objective_pusd,
    )
    return (
        verdict.candidate.name,
        verdict.reason.value,
        _cell(verdict.ttft_ms, 0),
        _cell(verdict.tpot_ms, 1),
        _cell(verdict.kv_ratio, 2),
        _cell(verdict.load, 2),
        _cell(verdict.miss_probability, 2),
        _cell(None if seconds is None else 1000.0 * seconds, 1),
        _cell(None if density is None else density * 3600.0 / PUSD_PER_USD, 2),
        _cell(None if objective is None else objective / PUSD_PER_MICRO_USD, 1),
        _cell(None if bound is None else bound / PUSD_PER_MICRO_USD, 1),
    )


def _cell(number: float | None, digits: int) -> str:
    return "-" if number is None else f"{number:.{digits}f}"


def _finite(number: float | None) -> float | None:
    return None if number is None or not isfinite(number) else number
