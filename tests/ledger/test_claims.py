"""Figures published about self-hosting, recomputed from their own inputs by the product.

`data/claims.csv` holds the claim, the formula, the inputs and what the inputs really give. Each
formula is one function of `ledger`; a new kind of claim needs a new function there, not arithmetic
here.
"""

import csv
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from ledger import breakeven, economics, inference
from ledger.economics import TokenBasis, UnitPrice, Volume
from ledger.money import pusd_to_usd, usd_per_million_to_pusd, usd_to_pusd

CLAIMS = list(
    csv.DictReader((Path(__file__).parent / "data" / "claims.csv").read_text().splitlines())
)
BOTH = TokenBasis.INPUT_OUTPUT


def price(inputs: dict, name: str) -> UnitPrice:
    return UnitPrice(usd_per_million_to_pusd(inputs[name]), BOTH)


def fixed(inputs: dict) -> int:
    cost = economics.FixedCost(usd_to_pusd(inputs["own_usd"]))
    if "ops_hours_per_week" in inputs:
        ops = economics.ops_cost(
            hours_per_week=Fraction(inputs["ops_hours_per_week"]),
            pusd_per_hour=usd_to_pusd(inputs["ops_usd_per_hour"]),
            weeks=Fraction(inputs["weeks"]),
        )
        cost = economics.FixedCost(cost.gpu_pusd, ops)
    return cost.total_pusd


def peak(i: dict) -> Fraction:
    return economics.peak_unit_cost(
        pusd_per_hour=usd_to_pusd(i["usd_per_hour"]),
        tokens_per_s=Fraction(i["tokens_per_s"]),
        basis=TokenBasis.OUTPUT,
    ).usd_per_million


def month(i: dict) -> Decimal:
    return pusd_to_usd(
        economics.gpu_cost(
            gpus=1, pusd_per_hour=usd_to_pusd(i["usd_per_hour"]), hours=int(i["hours"])
        )
    )


def implied_volume(i: dict) -> Fraction:
    bill = usd_to_pusd(i["usd_per_month"])
    return breakeven.break_even_volume(fixed_pusd=bill, avoided=price(i, "usd_per_1m")).tokens


def break_even(i: dict) -> Fraction:
    avoided = price(i, "api_usd_per_1m")
    return breakeven.break_even_volume(fixed_pusd=fixed(i), avoided=avoided).tokens


def saving(i: dict) -> Decimal:
    stands = breakeven.position(
        volume=Volume(int(i["tokens"]), BOTH),
        fixed_pusd=fixed(i),
        avoided=price(i, "api_usd_per_1m"),
    )
    return pusd_to_usd(int(stands.result_pusd))


def allocated(i: dict) -> Fraction:
    served = Volume(int(i["tokens"]), BOTH)
    return economics.allocation_unit_cost(fixed_pusd=fixed(i), served=served).usd_per_million


def kv_cache(i: dict) -> int:
    each = inference.kv_bytes_per_token(
        layers=int(i["layers"]),
        kv_heads=int(i["kv_heads"]),
        head_dim=int(i["head_dim"]),
        bytes_per_element=int(i["bytes"]),
    )
    return inference.kv_cache_bytes(bytes_per_token=each, tokens=int(i["tokens"]))


def aggregate(i: dict, moment: str) -> Fraction:
    return inference.aggregate_tokens_per_s(
        tokens_per_s_each=int(i[f"{moment}_tokens_per_s"]), users=int(i[f"{moment}_users"])
    )


def thousand_tokens_per_usd(i: dict) -> Fraction:
    tokens = economics.tokens_per_usd(
        pusd_per_hour=usd_to_pusd(i["usd_per_hour"]), tokens_per_s=Fraction(i["tokens_per_s"])
    )
    return inference.times(larger=tokens, smaller=1000)


def weights_gb(i: dict) -> Fraction:
    each = inference.bytes_per_parameter(bits=int(i["bits"]))
    size = inference.weight_bytes(parameters=int(i["parameters"]), bytes_per_parameter=each)
    return inference.times(larger=size, smaller=10**9)


FORMULAS: dict[str, Callable[[dict], Fraction | Decimal | int]] = {
    "usd_per_hour / (tokens_per_s * 3600) * 1e6": peak,
    "usd_per_hour * hours": month,
    "usd_per_month / usd_per_1m * 1e6": implied_volume,
    "own_usd / api_usd_per_1m * 1e6": break_even,
    "(own_usd + ops_hours_per_week * ops_usd_per_hour * weeks) / api_usd_per_1m * 1e6": break_even,
    "tokens / 1e6 * api_usd_per_1m - own_usd": saving,
    "own_usd / tokens * 1e6": allocated,
    "2 * layers * kv_heads * head_dim * bytes * tokens": kv_cache,
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
    "tokens_per_s * 3600 / usd_per_hour / 1000": thousand_tokens_per_usd,
    "parameters * bits / 8 / 1e9": weights_gb,
    "to_tokens_per_s * to_users / (from_tokens_per_s * from_users)": lambda i: inference.times(
        larger=aggregate(i, "to"), smaller=aggregate(i, "from")
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


def inputs_of(claim: dict, end: int) -> dict[str, Decimal]:
    """The inputs by name; of a range `low..high` the one at `end` (0 or 1)."""
    pairs = (pair.split("=") for pair in claim["inputs"].split(";"))
    return {name: Decimal(value.split("..")[end % len(value.split(".."))]) for name, value in pairs}


def test_the_table_is_whole() -> None:
    assert len(CLAIMS) == 47
    assert len({claim["id"] for claim in CLAIMS}) == len(CLAIMS)
    assert {claim["formula"] for claim in CLAIMS} == set(FORMULAS)


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim["id"] for claim in CLAIMS])
def test_recomputed_column_follows_from_the_inputs(claim: dict) -> None:
    ends = claim["recomputed"].split("..")
    for end, expected in enumerate(ends):
        got = Fraction(FORMULAS[claim["formula"]](inputs_of(claim, end)))
        places = len(expected.partition(".")[2])
        assert round(got, places) == Fraction(expected), f"{float(got)} is not {expected}"


REACH = {  # token basis of the capacity -> claims whose break-even lies beyond it
    TokenBasis.OUTPUT: {
        "even-2xH100-gpt-4o", "even-2xH100-sonnet", "even-2xA100-gpt-4o", "even-2xA100-sonnet",
    },
    TokenBasis.INPUT_OUTPUT: set(),
}  # fmt: skip


@pytest.mark.parametrize("basis", TokenBasis)
def test_a_break_even_is_within_reach_or_not_by_the_measured_speed(basis: TokenBasis) -> None:
    beyond = set()
    for claim in CLAIMS:
        i = inputs_of(claim, 0)
        if "input_per_output" not in i:
            continue
        capacity = economics.capacity(
            tokens_per_s=Fraction(i["tokens_per_s"]),
            hours=int(i["hours"]),
            duty=1,
            basis=TokenBasis.OUTPUT,
        )
        if basis is BOTH:
            capacity = economics.on_all_tokens(capacity, input_per_output=i["input_per_output"])
        whole = breakeven.Configuration(1, fixed(i), 1, capacity)
        avoided = UnitPrice(price(i, "api_usd_per_1m").pusd_per_token, basis)
        if not breakeven.assess(whole, avoided).feasible:
            beyond.add(claim["id"])
    assert beyond == REACH[basis]
