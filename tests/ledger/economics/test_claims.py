"""Published figures, recomputed: every row of the table follows from its own inputs."""

import csv
import io
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from ledger.economics.claimed_figures import judge_claim
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
from ledger.economics.formula_text import evaluate

CLAIMS = claims()


def test_the_table_is_whole() -> None:
    assert len(CLAIMS) == 96
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.formula for claim in CLAIMS} > set(FORMULAS)
    assert Counter(claim.article for claim in CLAIMS).most_common(1)[0][1] < len(CLAIMS)
    assert all(claim.article and claim.verdict for claim in CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_recomputed_column_follows_from_the_inputs(claim) -> None:
    ends = claim.recomputed.split("..")
    for got, expected in zip(compute(claim), ends, strict=True):
        places = len(expected.partition(".")[2])
        assert round(got, places) == Fraction(expected), f"{float(got)} is not {expected}"
    assert is_recomputed_equal(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_the_products_functions_say_what_the_written_formula_says(claim) -> None:
    """Two ways to one figure: a function that the books use, and plain arithmetic on the text."""
    for end, got in enumerate(compute(claim)):
        assert float(evaluate(claim.formula, inputs_of(claim, end))) == pytest.approx(float(got))


# What a person judged otherwise than the figures alone say, and why.
JUDGED = {
    "saving-800M": "it claims more than the figure",
    "kv-2048-mha": "5 GB is rounded to a digit",
    "ttft-stack": "10 is rounded to a digit",
    "cost-factor": "the ratio follows, its two prices do not fit together",
    "kv-reserved-mha": "over 100 GB, and more than the cards hold",
    "draft-0.7-4": "the figure is an upper bound", "draft-0.8-4": "the figure is an upper bound",
    "draft-0.75-4": "the figure is an upper bound",
}  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_the_verdict_is_what_the_figures_say_or_has_its_reason(claim) -> None:
    said = judge_claim(claim.claimed, compute(claim)[0])
    follows = said.startswith("follows")
    assert (follows == claim.is_confirmed) == (claim.id not in JUDGED)
    assert said.startswith("derived") == (not claim.is_stated)


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


SHARED = Path(__file__).resolve().parents[4] / "shared"
LISTS = [SHARED / "seed_claims.csv", SHARED / "field" / "claims_more.csv"]


@pytest.mark.skipif(not all(path.exists() for path in LISTS), reason=f"{SHARED} is not here")
def test_every_claim_of_the_lists_is_in_the_table() -> None:
    """By its figures: words were made plainer, and names of inputs follow the formula."""
    rows = [
        row
        for path in LISTS
        for row in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    ]
    assert len(rows) == len(CLAIMS)
    known = Counter(Decimal(end) for claim in CLAIMS for end in claim.recomputed.split(".."))
    for row in rows:
        ends = [Decimal(end) for end in row["recomputed"].replace(" to ", "..").split("..")]
        assert all(known[end] for end in ends), row["claim"]
