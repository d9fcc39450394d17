"""Published figures about self-hosting, recomputed from their own inputs.

`claims.csv` holds each claim, its article, formula and inputs, and the recomputed value. Formulas
that the product uses for its own ledger call the same functions here. Other formulas are plain
arithmetic on the article's figures (`formula_text`). The table quotes claims in the article's
words; `compute` returns the recomputed value.
"""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from ledger.economics import breakeven, inference
from ledger.economics import cost as economics
from ledger.economics.cost import Exact, TokenBasis, UnitPrice, Volume
from ledger.economics.formula_text import evaluate
from ledger.money import PUSD_PER_USD, usd_per_million_to_pusd, usd_to_pusd

BOTH = TokenBasis.INPUT_OUTPUT
DATA = Path(__file__).with_name("claims.csv")
FOLLOWS = "follows"
Inputs = Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """One published figure. `inputs` and `recomputed` may be ranges, `low..high`."""

    id: str
    article: str
    claim: str
    formula: str
    basis: str  # token basis; empty for a claim that is not about tokens
    inputs: str  # name=value;name=value
    claimed: str
    recomputed: str
    unit: str
    verdict: str

    @property
    def is_confirmed(self) -> bool:
        return self.verdict.startswith(FOLLOWS)

    @property
    def is_stated(self) -> bool:
        """Return whether the article states the figure; others are derived from stated ones."""
        return self.claimed != "not stated"


def claims() -> tuple[PublishedClaim, ...]:
    """Return the claims in the order of the table."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return tuple(PublishedClaim(**row) for row in csv.DictReader(file))


def inputs_of(claim: PublishedClaim, end: int = 0) -> dict[str, Decimal]:
    """Return the inputs by name; of a range, the value at `end` (0 or 1)."""
    pairs = (pair.split("=") for pair in claim.inputs.split(";"))
    return {name: Decimal(value.split("..")[end % len(value.split(".."))]) for name, value in pairs}


def compute(claim: PublishedClaim) -> tuple[Fraction, ...]:
    """Return the value that the claim's inputs give: one figure, or both ends of a range."""
    ends = len(claim.recomputed.split(".."))
    return tuple(compute_with(claim.formula, inputs_of(claim, end)) for end in range(ends))


def compute_with(formula: str, inputs: Inputs) -> Fraction:
    """Compute a claim's formula with other inputs. Raises `ValueError` for impossible ones."""
    known = FORMULAS.get(formula)
    return evaluate(formula, inputs) if known is None else Fraction(known(inputs))


def is_recomputed_equal(claim: PublishedClaim) -> bool:
    """Return whether the computed value equals the table's, to the table's decimals."""
    for told, value in zip(claim.recomputed.split(".."), compute(claim), strict=True):
        if round(value, len(told.partition(".")[2])) != Fraction(told):
            return False
    return True


def is_within_reach(claim: PublishedClaim, basis: TokenBasis) -> bool | None:
    """Return whether the article's measured speed can serve its break-even volume.

    The speed is restated on `basis`. `None` for claims that are not about a break-even volume.
    """
    i = inputs_of(claim)
    if "input_per_output" not in i:
        return None
    capacity = economics.capacity(
        tokens_per_s=Fraction(i["tokens_per_s"]),
        hours=int(i["hours"]),
        duty=1,
        basis=TokenBasis.OUTPUT,
    )
    if basis is BOTH:
        mix = Fraction(i["input_per_output"])
        capacity = economics.on_all_tokens(capacity, input_per_output=mix)
    whole = breakeven.FleetConfiguration(1, _fixed(i), 1, capacity)
    avoided = UnitPrice(_price(i, "api_usd_per_1m").pusd_per_token, basis)
    return breakeven.assess(whole, avoided).feasible


def _price(inputs: Inputs, name: str) -> UnitPrice:
    return UnitPrice(usd_per_million_to_pusd(inputs[name]), BOTH)


def _fixed(inputs: Inputs) -> Exact:
    cost = economics.FixedCost(usd_to_pusd(inputs["own_usd"]))
    if "ops_hours_per_week" in inputs:
        ops = economics.ops_cost(
            hours_per_week=Fraction(inputs["ops_hours_per_week"]),
            pusd_per_hour=usd_to_pusd(inputs["ops_usd_per_hour"]),
            weeks=Fraction(inputs["weeks"]),
        )
        cost = economics.FixedCost(cost.gpu_pusd, ops)
    return cost.total_pusd


def _peak(i: Inputs) -> Fraction:
    return economics.peak_unit_cost(
        pusd_per_hour=usd_to_pusd(i["usd_per_hour"]),
        tokens_per_s=Fraction(i["tokens_per_s"]),
        basis=TokenBasis.OUTPUT,
    ).usd_per_million


def _month(i: Inputs) -> Fraction:
    return _dollars(
        economics.gpu_cost(
            gpus=1, pusd_per_hour=usd_to_pusd(i["usd_per_hour"]), hours=int(i["hours"])
        )
    )


def _implied_volume(i: Inputs) -> Exact:
    bill = usd_to_pusd(i["usd_per_month"])
    return _tokens(breakeven.break_even_volume(fixed_pusd=bill, avoided=_price(i, "usd_per_1m")))


def _break_even(i: Inputs) -> Exact:
    avoided = _price(i, "api_usd_per_1m")
    return _tokens(breakeven.break_even_volume(fixed_pusd=_fixed(i), avoided=avoided))


def _saving(i: Inputs) -> Fraction:
    stands = breakeven.position(
        volume=Volume(int(i["tokens"]), BOTH),
        fixed_pusd=_fixed(i),
        avoided=_price(i, "api_usd_per_1m"),
    )
    return _dollars(stands.result_pusd)


def _allocated(i: Inputs) -> Fraction:
    served = Volume(int(i["tokens"]), BOTH)
    each = economics.allocation_unit_cost(fixed_pusd=_fixed(i), served=served)
    if each is None:
        raise ValueError("nothing was served")
    return each.usd_per_million


def _kv_cache(i: Inputs) -> Exact:
    each = inference.kv_bytes_per_token(
        layers=int(i["layers"]),
        kv_heads=int(i["kv_heads"]),
        head_dim=int(i["head_dim"]),
        bytes_per_element=int(i["bytes"]),
    )
    return inference.kv_cache_bytes(bytes_per_token=each, tokens=int(i["tokens"]))


def _aggregate(i: Inputs, moment: str) -> Exact:
    return inference.aggregate_tokens_per_s(
        tokens_per_s_each=int(i[f"{moment}_tokens_per_s"]), users=int(i[f"{moment}_users"])
    )


def _thousand_tokens_per_usd(i: Inputs) -> Fraction:
    tokens = economics.tokens_per_usd(
        pusd_per_hour=usd_to_pusd(i["usd_per_hour"]), tokens_per_s=Fraction(i["tokens_per_s"])
    )
    return inference.times(larger=tokens, smaller=1000)


def _weights_gb(i: Inputs) -> Fraction:
    each = inference.bytes_per_parameter(bits=int(i["bits"]))
    size = inference.weight_bytes(parameters=int(i["parameters"]), bytes_per_parameter=each)
    return inference.times(larger=size, smaller=10**9)


FORMULAS: Mapping[str, Callable[[Inputs], Exact | Decimal]] = {
    "usd_per_hour / (tokens_per_s * 3600) * 1e6": _peak,
    "usd_per_hour * hours": _month,
    "usd_per_month / usd_per_1m * 1e6": _implied_volume,
    "own_usd / api_usd_per_1m * 1e6": _break_even,
    "(own_usd + ops_hours_per_week * ops_usd_per_hour * weeks) / api_usd_per_1m * 1e6": _break_even,
    "tokens / 1e6 * api_usd_per_1m - own_usd": _saving,
    "own_usd / tokens * 1e6": _allocated,
    "2 * layers * kv_heads * head_dim * bytes * tokens": _kv_cache,
    "1 - after / before": lambda i: inference.saved_share(
        before=Fraction(i["before"]), after=Fraction(i["after"])
    ),
    "before - after": lambda i: inference.saved(
        before=Fraction(i["before"]), after=Fraction(i["after"])
    ),
    "larger / smaller": lambda i: inference.times(
        larger=Fraction(i["larger"]), smaller=Fraction(i["smaller"])
    ),
    "(1 - acceptance^(drafted+1)) / (1 - acceptance)": lambda i: inference.tokens_per_pass(
        acceptance=Fraction(i["acceptance"]), drafted=int(i["drafted"])
    ),
    "tokens_per_s * 3600 / usd_per_hour / 1000": _thousand_tokens_per_usd,
    "parameters * bits / 8 / 1e9": _weights_gb,
    "to_tokens_per_s * to_users / (from_tokens_per_s * from_users)": lambda i: inference.times(
        larger=_aggregate(i, "to"), smaller=_aggregate(i, "from")
    ),
    "bits / 8": lambda i: inference.bytes_per_parameter(bits=int(i["bits"])),
    "bytes / bytes_per_s * 1000": lambda i: inference.read_ms(
        bytes_read=Fraction(i["bytes"]), bytes_per_s=Fraction(i["bytes_per_s"])
    ),
    "batch / itl_ms * 1000": lambda i: inference.decode_tokens_per_s(
        batch=Fraction(i["batch"]), itl_ms=Fraction(i["itl_ms"])
    ),
    "after / before / times_the_gpus": lambda i: inference.scaling_efficiency(
        before=Fraction(i["before"]),
        after=Fraction(i["after"]),
        times_the_gpus=int(i["times_the_gpus"]),
    ),
}


def _dollars(pusd: Exact) -> Fraction:
    return Fraction(pusd) / PUSD_PER_USD


def _tokens(volume: Volume | None) -> Exact:
    if volume is None:
        raise ValueError("nothing is saved per token: no volume breaks even")
    return volume.tokens
