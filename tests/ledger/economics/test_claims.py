"""Published figures, recomputed: every row of the table follows from its own inputs."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from ledger.economics.claims import (
    FORMULAS,
    claims,
    compute,
    compute_with,
    inputs_of,
    is_recomputed_equal,
    is_within_reach,
)
from ledger.economics.cost import TokenBasis

CLAIMS = claims()


def test_the_table_is_whole() -> None:
    assert len(CLAIMS) == 47
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.formula for claim in CLAIMS} == set(FORMULAS)


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_recomputed_column_follows_from_the_inputs(claim) -> None:
    ends = claim.recomputed.split("..")
    for got, expected in zip(compute(claim), ends, strict=True):
        places = len(expected.partition(".")[2])
        assert round(got, places) == Fraction(expected), f"{float(got)} is not {expected}"
    assert is_recomputed_equal(claim)


def test_another_figure_would_be_seen() -> None:
    assert not is_recomputed_equal(replace(CLAIMS[0], recomputed="15.0660"))
    assert not is_recomputed_equal(replace(CLAIMS[0], inputs="usd_per_hour=6.5;tokens_per_s=118"))


def test_anybody_can_put_other_figures_in() -> None:
    inputs = inputs_of(CLAIMS[0]) | {"tokens_per_s": Decimal(236)}
    assert compute_with(CLAIMS[0].formula, inputs) * 2 == compute(CLAIMS[0])[0]
    with pytest.raises(ValueError, match="above zero"):
        compute_with(CLAIMS[0].formula, {**inputs, "tokens_per_s": Decimal(0)})


REACH = {  # token basis of the capacity -> claims whose break-even lies beyond it
    TokenBasis.OUTPUT: {
        "even-2xH100-gpt-4o", "even-2xH100-sonnet", "even-2xA100-gpt-4o", "even-2xA100-sonnet",
    },
    TokenBasis.INPUT_OUTPUT: set(),
}  # fmt: skip


@pytest.mark.parametrize("basis", TokenBasis)
def test_a_break_even_is_within_reach_or_not_by_the_measured_speed(basis: TokenBasis) -> None:
    beyond = {claim.id for claim in CLAIMS if is_within_reach(claim, basis) is False}
    assert beyond == REACH[basis]
