"""Parameters, weights and KV room."""

import pytest


def test_a_mixture_multiplies_its_active_parameters(planned):
    made = planned("moe", "H200")
    assert made["active_parameters"] < made["parameters"] / 3
    assert made["decode_floor_s"] == pytest.approx(
        (made["weight_bytes"] - 2 * (made["parameters"] - made["active_parameters"])) / 4.3e12
    )
