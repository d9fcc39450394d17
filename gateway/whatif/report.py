"""Results of a what-if: dollars, promises, spill, load over time, disagreement.

Money is pico-USD internally and USD in the document. Fixed dollars are the cost of the engines over
the time of the traffic, whatever they do. A refused request keeps no promise. The value of a
request is its cost at the cheapest API of its model, else at the cheapest comparator, at its actual
lengths and with the cached tokens if all requests were sent there. `all_api` is its sum over served
requests, and `saved` is what remains of it after rent and API costs.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from gateway.whatif.policy_replay import PolicyReplay, ReplayDecision, charged_pusd
from gateway.whatif.replay import ReplayOutcome
from gateway.whatif.replay_caches import CachedBills
from gateway.whatif.replay_fleet import ReplayFleet
from gateway.whatif.traffic import Arrival
from ledger.journals.records import TokenCounts
from ledger.money import PUSD_PER_USD
from ledger.prices.book import Price, cost_pusd

EXAMPLES = 5
MOST_FLOWS = 20


class AllApiBill:
    """Cost of each request at the cheapest API of its model, in order."""

    def __init__(self, house: ReplayFleet, arrivals: Sequence[Arrival]) -> None:
        known: dict[str, Sequence[Price]] = {}
        bills = CachedBills()
        self._hits = []
        for arrival in arrivals:
            prices = known.get(arrival.model)
            if prices is None:
                prices = known[arrival.model] = house.value_prices(arrival.model)
            self._hits.append(bills.hits(arrival, prices))

    def of(self, outcomes: Sequence[ReplayOutcome]) -> list[int | None]:
        """Return the cost of each outcome at its actual lengths; `None` without a price."""
        return [
            min(
                [
                    cost_pusd(hit.split(_tokens_of(outcome), for_an_hour=False), price)
                    for price, hit in hits
                ],
                default=None,
            )
            for outcome, hits in zip(outcomes, self._hits, strict=True)
        ]


def _tokens_of(outcome: ReplayOutcome) -> TokenCounts:
    arrival = outcome.arrival
    return TokenCounts(input=arrival.prompt_tokens, output=arrival.output_tokens)


def decision_of(outcome: ReplayOutcome) -> ReplayDecision:
    assert outcome.choice is not None, "it was asked"
    told = outcome.choice.told
    assert isinstance(told, ReplayDecision), "its chooser was `PolicyReplay`"
    return told


def api_pusd(outcome: ReplayOutcome) -> int | None:
    """Return the API's charge: 0 without an API, `None` if its price is unknown."""
    return 0 if outcome.engine is not None else charged_pusd(outcome, decision_of(outcome))


def result(
    name: str,
    house: ReplayFleet,
    planned: PolicyReplay,
    outcomes: Sequence[ReplayOutcome],
    bill: AllApiBill,
) -> dict[str, Any]:
    """Return the results of one policy set; every figure in the unit of its name."""
    seconds = outcomes[-1].arrival.at_s
    per_hour, unknown = house.fixed_pusd_per_hour()
    fixed = per_hour * seconds / 3600.0 / PUSD_PER_USD
    charged = [api_pusd(outcome) for outcome in outcomes]
    api = sum(number for number in charged if number is not None) / PUSD_PER_USD
    worth = bill.of(outcomes)
    served = [bool(decision_of(outcome).target) for outcome in outcomes]
    asked = [pusd for pusd, is_served in zip(worth, served, strict=True) if is_served]
    all_api = sum(pusd or 0 for pusd in asked) / PUSD_PER_USD
    return {
        "policy": name,
        "dollars": {
            "fixed_usd": fixed,
            "fixed_unknown_pools": unknown,
            "api_usd": api,
            "api_expected_usd": _expected_usd(outcomes),
            "total_usd": fixed + api,
            "api_unpriced_requests": sum(number is None for number in charged),
            "all_api_usd": all_api,
            "all_api_unpriced_requests": sum(pusd is None for pusd in asked),
            "saved_usd": all_api - fixed - api,
        },
        "classes": [
            _class(
                rule,
                [outcome for outcome in outcomes if decision_of(outcome).rule == rule],
                planned,
            )
            for rule in planned.slos
        ],
        "spill": _spill(house, outcomes, worth),
        "sessions": planned.holding.document(),
        "targets": _targets(planned, outcomes),
        "reasons": dict(
            Counter(decision_of(outcome).reason.value for outcome in outcomes).most_common()
        ),
        "load": [sample._asdict() for sample in planned.samples.values()],
    }


def _expected_usd(outcomes: Sequence[ReplayOutcome]) -> float:
    """Return the API charges expected at the decisions."""
    expected = [decision_of(outcome).expected_pusd for outcome in outcomes]
    return sum(pusd for pusd in expected if pusd is not None) / PUSD_PER_USD


def _class(rule: str, outcomes: Sequence[ReplayOutcome], planned: PolicyReplay) -> dict[str, Any]:
    slo = planned.slos[rule]
    served = [outcome for outcome in outcomes if decision_of(outcome).target]
    own = [outcome for outcome in served if outcome.engine is not None]
    api = [outcome for outcome in served if outcome.engine is None]
    decoded = [1000.0 * outcome.tpot_s for outcome in served if outcome.arrival.output_tokens > 1]
    firsts = [1000.0 * outcome.ttft_s for outcome in served]
    kept = _share(sum(outcome.has_met_slo(slo) for outcome in own), len(own))
    return {
        "class": rule,
        "slo": {"ttft_ms": slo.ttft_ms, "tpot_ms": slo.tpot_ms, "attainment": slo.attainment},
        "requests": len(outcomes),
        "refused": len(outcomes) - len(served),
        "attainment": _share(sum(outcome.has_met_slo(slo) for outcome in served), len(outcomes)),
        "attainment_own": kept,
        "breaks_promise": kept is not None and kept < slo.attainment,
        "engines_break": planned.broken.get(rule, []),
        "attainment_api": _share(sum(outcome.has_met_slo(slo) for outcome in api), len(api)),
        "ttft_ms_p50": _quantile(firsts, 0.5),
        "ttft_ms_p95": _quantile(firsts, 0.95),
        "tpot_ms_p50": _quantile(decoded, 0.5),
        "tpot_ms_p95": _quantile(decoded, 0.95),
        "waited_ms_mean": 1000.0
        * sum(outcome.waited_s for outcome in served)
        / max(1, len(served)),
        "preempted": sum(outcome.preemptions > 0 for outcome in own),
    }


def _spill(
    house: ReplayFleet, outcomes: Sequence[ReplayOutcome], worth: Sequence[int | None]
) -> dict[str, Any]:
    """Return the share of requests that an own engine may serve and an API served."""
    own = {
        name: any(target.own for target in house.fleet.targets(*found))
        for name in {outcome.arrival.model for outcome in outcomes}
        if (found := house.model(name)) is not None
    }
    some = [
        (outcome.engine is None, pusd or 0)
        for outcome, pusd in zip(outcomes, worth, strict=True)
        if own[outcome.arrival.model] and decision_of(outcome).target
    ]
    spilled = [pusd for is_spilled, pusd in some if is_spilled]
    value, spilled_value = (
        sum(amounts) / PUSD_PER_USD for amounts in ([pusd for _, pusd in some], spilled)
    )
    return {
        "requests": len(some),
        "spilled": len(spilled),
        "share_by_count": _share(len(spilled), len(some)),
        "value_usd": value,
        "spilled_value_usd": spilled_value,
        "share_by_value": _share(spilled_value, value),
    }


def _targets(planned: PolicyReplay, outcomes: Iterable[ReplayOutcome]) -> list[dict[str, Any]]:
    """Return rows by target; `cached` are prompt tokens read from a cache.

    `apart` counts requests whose prompts another engine read.
    """
    rows: dict[str, dict[str, Any]] = {}
    found = {seat.name: seat.engine.totals.prefix_hits for seat in planned.seats}
    for outcome in outcomes:
        name = decision_of(outcome).target or "refused"
        row = rows.setdefault(
            name,
            {
                "target": name,
                "requests": 0,
                "input": 0,
                "cached": found.get(name, 0),
                "output": 0,
                "api_usd": 0.0,
                "apart": 0,
            },
        )
        row["requests"] += 1
        row["apart"] += outcome.choice is not None and outcome.choice.leg is not None
        if name != "refused":
            row["input"] += outcome.arrival.prompt_tokens
            if outcome.engine is None:
                row["cached"] += decision_of(outcome).hit.expected
            row["output"] += outcome.arrival.output_tokens
            row["api_usd"] += (api_pusd(outcome) or 0) / PUSD_PER_USD
    return sorted(rows.values(), key=lambda row: str(row["target"]))


def disagreement(before: Sequence[ReplayOutcome], after: Sequence[ReplayOutcome]) -> dict[str, Any]:
    """Return requests that two policy sets send to different targets, and the difference."""
    flows: dict[tuple[str, str], list[tuple[ReplayOutcome, ReplayOutcome]]] = {}
    for outcome, other in zip(before, after, strict=True):
        here, there = _target_of(outcome), _target_of(other)
        if here != there:
            flows.setdefault((here, there), []).append((outcome, other))
    ranked = sorted(flows.items(), key=lambda item: (-len(item[1]), item[0]))
    moved = sum(map(len, flows.values()))
    return {
        "requests": len(after),
        "moved": moved,
        "share": _share(moved, len(after)),
        "flows": [_flow(places, pairs) for places, pairs in ranked[:MOST_FLOWS]],
        "further_flows": max(0, len(ranked) - MOST_FLOWS),
    }


def _flow(
    places: tuple[str, str], pairs: Sequence[tuple[ReplayOutcome, ReplayOutcome]]
) -> dict[str, Any]:
    dollars = sum((api_pusd(new) or 0) - (api_pusd(old) or 0) for old, new in pairs)
    return {
        "from": places[0],
        "to": places[1],
        "requests": len(pairs),
        "api_usd_change": dollars / PUSD_PER_USD,
        "prompt_tokens_p50": median(outcome.arrival.prompt_tokens for outcome, _ in pairs),
        "output_tokens_p50": median(outcome.arrival.output_tokens for outcome, _ in pairs),
        "examples": [
            {
                "at_s": round(old.arrival.at_s, 3),
                "model": old.arrival.model,
                "team": old.arrival.tenant,
                "prompt_tokens": old.arrival.prompt_tokens,
                "output_tokens": old.arrival.output_tokens,
                "rule": [decision_of(old).rule, decision_of(new).rule],
                "reason": [decision_of(old).reason.value, decision_of(new).reason.value],
                "ttft_ms": [_finite_ms(old), _finite_ms(new)],
            }
            for old, new in pairs[:: max(1, len(pairs) // EXAMPLES)][:EXAMPLES]
        ],
    }


def _target_of(outcome: ReplayOutcome) -> str:
    """Return the target; replicas of a pool count as one."""
    target = decision_of(outcome).target
    return target.rpartition("/")[0] if outcome.engine is not None else target or "refused"


def _finite_ms(outcome: ReplayOutcome) -> float | None:
    return round(1000.0 * outcome.ttft_s, 1) if decision_of(outcome).target else None


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _quantile(values: Sequence[float], share: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
