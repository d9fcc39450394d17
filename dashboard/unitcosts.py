"""Cost per token of own engines and APIs, on both token bases; pure.

The allocation basis (the whole bill over served tokens) is the one to compare with an API. The
usage basis counts busy time only: it is for tuning engines, not for comparisons. A figure per
output token is never compared with one per token of any kind.
"""

from dataclasses import dataclass
from fractions import Fraction

from ledger.economics.cost import TokenBasis, Volume, allocation_unit_cost
from ledger.queries.reads import CONVERSATION, AttemptCell
from ledger.reports.survey import Survey


@dataclass(frozen=True, slots=True)
class UnitCost:
    """Pico-USD per token on each basis; `None` if nothing was served or no rate is known."""

    name: str
    per_token: dict[TokenBasis, Fraction | None]


def unit_costs(survey: Survey) -> list[UnitCost]:
    """Return unit costs of chats and completions; own ones inside their SLO."""
    own = [cell for cell in survey.cells if cell.avoids and cell.kind in CONVERSATION]
    api = [cell for cell in survey.cells if cell.backend == "api" and cell.is_answered
           and cell.kind in CONVERSATION]  # fmt: skip
    standing = survey.standing
    rated = any(bill.is_rated for bill in standing.bills)
    found = []
    if own and survey.scope.team is None:
        whole = Fraction(standing.fixed.total_pusd) if rated else None
        ops = "idle and ops in it" if standing.fixed.ops_pusd else "idle in it; ops not entered"
        used = Fraction(sum(bill.used_pusd for bill in standing.bills)) if rated else None
        found += [
            UnitCost(f"Own, allocation basis (whole bill, {ops})", _both(own, whole)),
            UnitCost("Own, usage basis (busy time alone; never to compare)", _both(own, used)),
        ]
    if api:
        paid = Fraction(sum(cell.cost_pusd for cell in api))
        found.append(UnitCost("APIs, as charged", _both(api, paid)))
    return found


def _both(cells: list[AttemptCell], pusd: Fraction | None) -> dict[TokenBasis, Fraction | None]:
    return {basis: _unit_cost_of(cells, pusd, basis) for basis in TokenBasis}


def _unit_cost_of(
    cells: list[AttemptCell], pusd: Fraction | None, basis: TokenBasis
) -> Fraction | None:
    output = basis is TokenBasis.OUTPUT
    served = Volume(sum(cell.output_tokens if output else cell.tokens for cell in cells), basis)
    cost = None if pusd is None else allocation_unit_cost(fixed_pusd=pusd, served=served)
    return None if cost is None else Fraction(cost.pusd_per_token)
