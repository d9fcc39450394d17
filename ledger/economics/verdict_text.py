"""The verdict as text and as JSON, equal in every place.

`sentence` takes the function that formats money, so that the sentence is the same in every
currency. `describe` is the object of `ledger report --json` and `GET /verdict`; its money is
decimal text in USD, rounded half-even to cents.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ledger.economics.assumptions import PoolAssumptions
from ledger.economics.cost import Exact
from ledger.economics.fleet_verdict import (
    FleetVerdict,
    PoolVerdict,
    VerdictAction,
    VerdictOption,
    VerdictShift,
)
from ledger.money import PUSD_PER_USD, divide_half_even, format_usd

PUSD_PER_CENT = PUSD_PER_USD // 100
MANY_TIMES = 10
MoneyText = Callable[[Exact], str]


def dollars_and_cents(pusd: Exact) -> str:
    """Return text such as `$1,234.50`, rounded half-even."""
    return format_usd(_cents(pusd) * PUSD_PER_CENT, 2)


def sentence(verdict: FleetVerdict, money: MoneyText = dollars_and_cents) -> str:
    """Return the verdict as one sentence, or what is missing for a verdict."""
    missing = [pool for pool in verdict.pools if pool.action is None]
    judged = verdict.judged
    if not verdict.pools:
        return "No own GPU is configured, so there is nothing to keep or leave."
    if not judged:
        return _missing(missing)
    text = _pool_sentence(judged[0], money) if len(judged) == 1 else _fleet(verdict, money)
    return f"{text} {_missing(missing)}" if missing else text


def pool_sentence(verdict: PoolVerdict, money: MoneyText = dollars_and_cents) -> str:
    """Return one pool's verdict as a sentence."""
    return _missing([verdict]) if verdict.action is None else _pool_sentence(verdict, money)


def shift_text(
    shift: VerdictShift, assumptions: PoolAssumptions, money: MoneyText = dollars_and_cents
) -> str:
    """Return one sentence on the input value that would change the verdict."""
    side = "above" if shift.is_above else "below"
    goal = count_text(shift.gpus, assumptions)
    if shift.name == "ops":
        return f"Ops above {money(shift.value)} a month: leaving pays."
    if shift.name == "api_price":
        share = float(shift.value)
        prices = f"{share:.0f} times" if share >= MANY_TIMES else f"{share * 100:.0f} % of"
        return f"API prices {side} {prices} today's: {goal}."
    rate = f"A rate {side} {money(shift.value)}"
    if shift.value < PUSD_PER_CENT:
        rate = "A rate not near zero" if shift.is_above else "A rate near zero"
    return f"{rate} per {assumptions.noun[0]}-hour: {goal}."


def count_text(gpus: int, assumptions: PoolAssumptions) -> str:
    """Return text such as `2 GPUs`, `1 engine` or `no own GPU`."""
    single, many = assumptions.noun
    return f"no own {single}" if not gpus else f"{gpus} {single if gpus == 1 else many}"


def reserved_text(option: VerdictOption) -> str:
    """Return text such as ` and reserve 3 units of openai/gpt-4o`, or ""."""
    units = _units_text(option)
    return f" and reserve {units}" if units else ""


def _units_text(option: VerdictOption) -> str:
    return " and ".join(
        f"{plan.units} {'unit' if plan.units == 1 else 'units'} of {plan.offer.target}"
        for plan in option.reserved
    )


def _with_units(option: VerdictOption) -> str:
    units = _units_text(option)
    return f" with {units} reserved" if units else ""


def usd_cents(pusd: Exact) -> str:
    """Return decimal text in USD such as `249.30`, rounded half-even to cents."""
    return _usd(pusd) or ""


def describe(verdict: FleetVerdict) -> dict[str, Any]:
    """Return the verdict as JSON: the fleet at the top level, then every pool."""
    pools = [_described_pool(pool) for pool in verdict.pools]
    alone = verdict.pools[0] if len(verdict.pools) == 1 else None
    interval = verdict.interval_pusd
    month = Fraction(verdict.sheet.month_hours)
    return {
        "action": None if verdict.action is None else str(verdict.action),
        "gpus": verdict.gpus,
        "gpus_now": verdict.gpus_now,
        "worth_usd_per_month": _usd(verdict.worth_pusd),
        "worth_interval_usd": None if interval is None else [_usd(end) for end in interval],
        "depends_on_what_leaves_first": verdict.depends,
        "month_hours": int(month) if month.denominator == 1 else float(month),
        "sentence": sentence(verdict),
        "options": [] if alone is None else [_described_option(line) for line in alone.options],
        "assumptions": verdict.sheet.described(),
        "assumptions_version": verdict.sheet.version,
        "unknown": list(verdict.sheet.unknown),
        "changes": [
            {
                "name": shift.name, "pool": shift.pool, "gpus": shift.gpus,
                "when": "above" if shift.is_above else "below",
                "value": f"{float(shift.value):.4f}" if shift.name == "api_price" else
                _usd(shift.value, 6),
            }
            for pool in verdict.judged
            for shift in pool.shifts
        ],
        "pools": pools,
    }  # fmt: skip


def _described_pool(verdict: PoolVerdict) -> dict[str, Any]:
    interval = verdict.interval_pusd
    return {
        "pool": verdict.pool,
        "action": None if verdict.action is None else str(verdict.action),
        "gpus": None if verdict.best is None else verdict.best.gpus,
        "gpus_now": None if verdict.now is None else verdict.now.gpus,
        "worth_usd_per_month": _usd(verdict.worth_pusd),
        "worth_interval_usd": None if interval is None else [_usd(end) for end in interval],
        "depends_on_what_leaves_first": verdict.depends,
        "sentence": pool_sentence(verdict),
        "judged_from": {
            "hours": f"{float(verdict.assumptions.hours):g}",
            "answers": verdict.assumptions.answers,
            "failures": verdict.assumptions.failures,
        },
        "options": [_described_option(option) for option in verdict.options],
    }


def _described_option(option: VerdictOption) -> dict[str, Any]:
    return {
        "gpus": option.gpus, "allowed": option.allowed, "why_not": option.why_not,
        "gpu_usd": _usd(option.gpu_pusd), "ops_usd": _usd(option.ops_pusd),
        "api_usd": _usd(option.api_pusd), "total_usd": _usd(option.total_pusd),
        "total_pro_rata_usd": _usd(option.pro_rata_pusd),
        "reserved": [
            {
                "target": plan.offer.target, "units": plan.units, "term": plan.offer.term,
                "rent_usd": _usd(plan.rent_pusd), "overflow_usd": _usd(plan.overflow_pusd),
                "saved_usd": _usd(plan.saved_pusd),
                "utilisation": f"{float(plan.utilisation):.4f}",
            }
            for plan in option.reserved
        ],
    }  # fmt: skip


def _pool_sentence(verdict: PoolVerdict, money: MoneyText) -> str:
    best, now, pool = verdict.best, verdict.now, verdict.assumptions
    assert best is not None
    assert now is not None
    here = count_text(now.gpus, pool)
    if not verdict.moves:
        reason = _why_keep(verdict, money)
    elif verdict.action is VerdictAction.KEEP:
        reason = (
            f"{_cost_text(best, pool, money)} and {money(now.total_pusd or 0)} "
            "where every token is bought by itself"
        )
    else:
        reason = (
            f"{_cost_text(best, pool, money)} and {now.gpus} "
            f"{'costs' if now.gpus == 1 else 'cost'} {money(now.total_pusd or 0)}"
        )
    heads = {
        VerdictAction.KEEP: f"Keep {here}",
        VerdictAction.LEAVE: "Leave",
        VerdictAction.REDUCE: f"Reduce to {count_text(best.gpus, pool)}",
        VerdictAction.ADD: f"Add to {count_text(best.gpus, pool)}",
    }
    head = (heads[verdict.action] if verdict.action else "") + reserved_text(best)
    return f"{head}{_worth(verdict, money)}, because {reason}{_tail(verdict, money)}."


def _cost_text(option: VerdictOption, pool: PoolAssumptions, money: MoneyText) -> str:
    if not option.gpus:
        return f"{count_text(0, pool)} and all of it at APIs cost {money(option.total_pusd or 0)}"
    its = "its" if option.gpus == 1 else "their"
    return (
        f"{count_text(option.gpus, pool)} and {its} overflow cost {money(option.total_pusd or 0)}"
    )


def _why_keep(verdict: PoolVerdict, money: MoneyText) -> str:
    now, pool = verdict.now, verdict.assumptions
    assert now is not None
    others = [
        option for option in verdict.options if option.allowed and option.engines != now.engines
    ]
    text = _cost_text(now, pool, money)
    if not others:
        refused = [option for option in verdict.options if not option.allowed]
        reasons = dict.fromkeys(option.why_not for option in refused)
        return f"no other number is allowed: {'; '.join(reason for reason in reasons if reason)}"
    following = min(others, key=lambda option: option.total_pusd or 0)
    return (
        f"{text} and the next best, {count_text(following.gpus, pool)}, "
        f"{'costs' if following.gpus < 2 else 'cost'} {money(following.total_pusd or 0)}"
    )


def _worth(verdict: PoolVerdict, money: MoneyText) -> str:
    if verdict.worth_pusd is None:
        return ""
    text = f", worth {money(verdict.worth_pusd)} a month"
    ends = verdict.interval_pusd
    if ends is None or money(ends[0]) == money(ends[1]):
        return text
    return f"{text} ({money(ends[0])} to {money(ends[1])} by what leaves first)"


def _tail(verdict: PoolVerdict, money: MoneyText) -> str:
    """Return the reservations of a verdict: order of departure, substitutes, unknown ops."""
    pool, parts = verdict.assumptions, []
    if verdict.substitutes:
        parts.append(f", if {' and '.join(verdict.substitutes)} is good enough")
    if verdict.depends and verdict.other is not None:
        word = "keep" if verdict.other_action is VerdictAction.KEEP else "have"
        parts.append(
            f"; it depends on what leaves first: pro rata, {word} "
            f"{count_text(verdict.other.gpus, pool)}"
        )
    if pool.ops_pusd_per_week is None:
        threshold = next((shift for shift in verdict.shifts if shift.name == "ops"), None)
        if threshold is None:
            parts.append(" (ops not entered)")
        else:
            pays = f"leaving pays from {money(threshold.value)} of ops a month"
            parts.append(f" (ops not entered; {pays})")
    return "".join(parts)


def _fleet(verdict: FleetVerdict, money: MoneyText) -> str:
    """Return the sentence for several pools: the sums, and each pool's action."""
    judged, action = verdict.judged, verdict.action
    noun = judged[0].assumptions
    count = count_text(verdict.gpus, noun)
    heads = {
        VerdictAction.KEEP: f"Keep {count}",
        VerdictAction.LEAVE: "Leave",
        VerdictAction.REDUCE: f"Reduce to {count}",
        VerdictAction.ADD: f"Add to {count}",
    }
    worth, ends = verdict.worth_pusd, verdict.interval_pusd
    text = heads[action] if action else ""
    if worth is not None:
        text += f", worth {money(worth)} a month"
        if ends is not None and money(ends[0]) != money(ends[1]):
            text += f" ({money(ends[0])} to {money(ends[1])} by what leaves first)"
    moves = [
        f"pool {pool.pool} {_move(pool)}{_with_units(pool.best)}"
        for pool in judged
        if pool.moves and pool.best is not None
    ] or [f"pool {pool.pool} stays at {pool.now.gpus}" for pool in judged if pool.now]
    totals = (
        f"all of it costs {money(verdict.total_pusd(best=True))} then and "
        f"{money(verdict.total_pusd(best=False))} now"
    )
    if action is VerdictAction.KEEP:
        totals = f"all of it costs {money(verdict.total_pusd(best=False))}"
    tails = ""
    if verdict.depends:
        names = ", ".join(pool.pool for pool in judged if pool.depends)
        tails += f"; for {names} it depends on what leaves first"
    bare = [pool.pool for pool in judged if pool.assumptions.ops_pusd_per_week is None]
    if bare:
        of_all = len(bare) == len(judged)
        tails += " (ops not entered)" if of_all else f" (ops not entered for {', '.join(bare)})"
    return f"{text}, because {', '.join(moves)} and {totals}{tails}."


def _move(pool: PoolVerdict) -> str:
    assert pool.best is not None
    assert pool.now is not None
    return f"goes from {pool.now.gpus} to {pool.best.gpus}"


def _missing(pools: list[PoolVerdict]) -> str:
    texts = [f"No verdict for pool {pool.pool}: {pool.why_none}." for pool in pools]
    return " ".join(texts)


def _cents(pusd: Exact) -> int:
    exact = Fraction(pusd)
    return divide_half_even(exact.numerator, exact.denominator * PUSD_PER_CENT)


def _usd(pusd: Exact | None, places: int = 2) -> str | None:
    """Return decimal text such as `249.30`, or `None`."""
    if pusd is None:
        return None
    exact = Fraction(pusd) * 10**places / PUSD_PER_USD
    whole = divide_half_even(exact.numerator, exact.denominator)
    return f"{Decimal(whole).scaleb(-places):.{places}f}"
