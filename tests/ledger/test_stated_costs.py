"""A cost that a provider states is claimed where it is above what was computed."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.stated_costs import LIMIT_USD, stated_claim_pusd, stated_cost
from ledger.usage_figures import BESIDE

USD = 10**12
COUNTS = {"prompt_tokens": 10, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        ({"cost": 0.95, "is_byok": False, "cost_details": {"upstream_inference_cost": 19}}, "0.95"),
        ({"cost": 0.5, "is_byok": True, "cost_details": {"upstream_inference_cost": 1.25}}, "1.75"),
        ({"cost": 0.5, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, "0.5"),
        ({"cost_in_usd_ticks": 158_500}, "0.00001585"),
        ({"cost": {"input_tokens_cost": 0.001, "request_cost": 0.4, "total_cost": 0.401}}, "0.401"),
        ({"estimated_cost": 0.00002}, "0.00002"),
        ({"total_cost": "0.25"}, "0.25"),
        ({"cost_usd": 3}, "3"),
        ({"cost": 0.1, "cost_in_usd_ticks": 10**10}, "1"),
        ({BESIDE: [{**COUNTS, "cost": 0.5}]}, "0.5"),
        ({"cost": 0.1, BESIDE: [{**COUNTS, "cost": 0.5}, COUNTS]}, "0.5"),
    ],
)
def test_a_stated_cost_is_read(usage: dict, dollars: str) -> None:
    found = stated_cost(COUNTS | usage)
    assert found is not None
    assert found[0] == Decimal(dollars)
    assert stated_claim_pusd(COUNTS | usage, 0) == int(Decimal(dollars) * USD)
    assert stated_claim_pusd(COUNTS | usage, int(Decimal(dollars) * USD)) is None


@pytest.mark.parametrize(
    "usage",
    [
        {}, {"cost": 0}, {"cost": None}, {"cost": -1.0}, {"cost": True}, {"cost": "much"},
        {"cost": float("inf")}, {"cost": float("nan")}, {"cost": LIMIT_USD * 2}, {"cost": "1" * 99},
        {"cost": {"input_tokens_cost": 0.1}}, {"cost_in_usd_ticks": "5"}, {"cost": []},
        {"cost_in_usd_ticks": LIMIT_USD * 10**11},
    ],
)  # fmt: skip
def test_what_is_no_cost(usage: dict) -> None:
    assert stated_cost(COUNTS | usage) is None
    assert stated_claim_pusd(COUNTS | usage, 0) is None


@pytest.mark.parametrize(
    ("cost", "computed_pusd", "claimed"),
    [
        (1.0, 30_000_000, True),
        (0.006, 5_600_000_000, False),  # rounded up
        (0.006, 5_400_000_000, True),
        (0.00014, 140_000_000, False),
        (0.00014, 150_000_000, False),  # a discount
        (1e-7, 40_000, True),
    ],
)
def test_what_its_rounding_explains_is_not_claimed(cost, computed_pusd, claimed) -> None:
    found = stated_claim_pusd({"cost": cost}, computed_pusd)
    assert (found is not None) is claimed
    if found is not None:
        assert found == int(Decimal(str(cost)) * USD)


@pytest.mark.parametrize(("computed_pusd", "claimed"), [(49, True), (50, False)])
def test_half_a_tick_is_rounding(computed_pusd: int, claimed: bool) -> None:
    found = stated_claim_pusd({"cost_in_usd_ticks": 1}, computed_pusd)
    assert found == (100 if claimed else None)


@pytest.mark.parametrize(
    ("usage", "header", "claimed"),
    [
        ({}, "0.25", 25 * USD // 100),
        ({}, " 2.5e-05 ", 25 * USD // 10**6),
        ({"cost": 0.5}, "0.25", USD // 2),
        ({"cost": 0.1}, "0.25", USD // 4),
        ({"cost": 0.1}, "no figure", USD // 10),
        ({}, "0.0", None), ({}, "-1", None), ({}, "nan", None), ({}, "Infinity", None),
        ({}, "", None), ({}, "9" * 300, None), ({}, "0x1", None),
    ],
)  # fmt: skip
def test_a_header_states_a_cost_as_usage_does(usage: dict, header: str, claimed: int) -> None:
    assert stated_claim_pusd(COUNTS | usage, 0, header=header) == claimed


@given(st.dictionaries(
    st.sampled_from(("cost", "cost_in_usd_ticks", "total_cost", "cost_details", "is_byok")),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.dictionaries(st.sampled_from(("total_cost", "a")), inner, max_size=2),
        max_leaves=3,
    ),
), st.integers(0, 10**15))  # fmt: skip
def test_whatever_is_stated_is_a_bounded_claim_or_none(usage: dict[str, Any], cost: int) -> None:
    claimed = stated_claim_pusd(usage, cost)
    assert claimed is None or cost < claimed <= 2 * LIMIT_USD * USD
