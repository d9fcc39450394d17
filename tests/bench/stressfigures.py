"""What a scene of `bench_stress` came to, from three accounts that do not know of each other.

The provider's journal says what was worked on for each customer, the clients what they were told,
the gateway's ledger what was booked. Money is in whole pico-dollars.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

INPUT_PUSD, OUTPUT_PUSD = 10_000_000, 100_000_000  # a token: 10 and 100 dollars a million
BUDGET_PUSD = 50_000_000_000  # 0.05 dollars
USD = 10**12


@dataclass
class ClientTally:
    """What clients heard: calls by outcome, and refusals while there was room, by customer."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unjustified: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Figures:
    """One scene at one gateway. `booked` figures are None where a gateway keeps no books."""

    customers: int
    over_budget: int
    worst_overspend_usd: float
    spent_usd: float
    budget_used: float  # share of all customers' budgets
    lost_usd: float | None
    booked_beyond_usd: float | None
    unjustified_refusals: int
    outcomes: dict[str, int]


def worked(journal: Path, begin: int = 0) -> dict[str, int]:
    """Customer -> pico-dollars of the tokens that the provider worked out, read or not."""
    found: dict[str, int] = defaultdict(int)
    with journal.open("rb") as file:
        file.seek(begin)
        for line in file:
            if line.endswith(b"\n"):
                entry = json.loads(line)
                if entry["status"] != "refused":
                    tokens = (entry["prompt_tokens"], entry["completion_tokens"])
                    found[entry["request_id"]] += tokens[0] * INPUT_PUSD + tokens[1] * OUTPUT_PUSD
    return dict(found)


def figures(
    customers: Iterable[str],
    spent: Mapping[str, int],
    booked: Mapping[str, int] | None,
    told: ClientTally,
) -> Figures:
    names = list(customers)
    costs = [spent.get(name, 0) for name in names]
    over = [cost - BUDGET_PUSD for cost in costs if cost > BUDGET_PUSD]
    lost = beyond = None
    if booked is not None:
        gaps = [spent.get(name, 0) - booked.get(name, 0) for name in names]
        lost = sum(gap for gap in gaps if gap > 0) / USD
        beyond = sum(-gap for gap in gaps if gap < 0) / USD
    return Figures(
        customers=len(names),
        over_budget=len(over),
        worst_overspend_usd=max(over, default=0) / USD,
        spent_usd=sum(costs) / USD,
        budget_used=sum(costs) / (BUDGET_PUSD * len(names)),
        lost_usd=lost,
        booked_beyond_usd=beyond,
        unjustified_refusals=len(told.unjustified),
        outcomes=dict(sorted(told.outcomes.items())),
    )


def dearest_pusd(body: bytes, max_tokens: int) -> int:
    """What a call can cost at most: no token is shorter than a byte."""
    return len(body) * INPUT_PUSD + max_tokens * OUTPUT_PUSD


def table(rows: Mapping[str, Mapping[str, Figures]]) -> str:
    """scene -> gateway -> figures, as text."""
    head = ("scene", "gateway", "over budget", "worst overspend", "budget used", "lost spend",
            "refused falsely", "told")  # fmt: skip
    lines = [head]
    for scene, of_scene in rows.items():
        for gateway, item in of_scene.items():
            worst = item.worst_overspend_usd
            share = worst * USD / BUDGET_PUSD
            lost = "no books" if item.lost_usd is None else f"${item.lost_usd:.4f}"
            told = ", ".join(f"{count} {name}" for name, count in item.outcomes.items())
            lines.append(
                (scene, gateway, f"{item.over_budget / item.customers:.1%}",
                 f"${worst:.4f} ({share:.0%})", f"{item.budget_used:.0%}", lost,
                 str(item.unjustified_refusals), told)
            )  # fmt: skip
    widths = [max(len(line[place]) for line in lines) for place in range(len(head) - 1)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, (*widths, 0), strict=True)
        ).rstrip()
        for line in lines
    )
