"""The floor at load, worked out by hand for 32 users of a 70B shape in FP8 on one H200."""

from dataclasses import replace
from decimal import Decimal

import pytest

from backends.engine.loadfloor import UserLoad, load_floor

LOAD = UserLoad(32, 512, 256, Decimal("3.50"))
FP8 = {"weight_bytes": 69.5e9, "kv_bytes": 327_680, "bandwidth": 4.3e12}


def test_a_request_is_its_prefill_and_its_share_of_steps():
    """69.5 GB and 32 x 640 x 327,680 B at 4.3 TB/s: 17.72 ms; 70.6 TFLOP at 1,580: 44.7 ms."""
    found = load_floor(LOAD, prefill_s=0.0447, **FP8)
    assert found.step_s == pytest.approx(17.724e-3, rel=1e-4)
    assert found.request_s == pytest.approx(0.0447 + 256 * 17.724e-3 / 32, rel=1e-4)
    assert found.tokens_s == pytest.approx(3 * found.output_tokens_s)
    assert found.usd_per_million == pytest.approx(0.236, abs=5e-4)
    assert found.usd_per_million_output == pytest.approx(3 * found.usd_per_million)


def test_more_users_share_the_weights():
    few, many = (
        load_floor(replace(LOAD, users=users), prefill_s=0.0447, **FP8) for users in (1, 64)
    )
    assert many.request_s < few.request_s / 10
    assert many.step_s > few.step_s


def test_without_a_rate_there_is_no_cost():
    found = load_floor(UserLoad(8), prefill_s=0.1, **FP8)
    assert found.usd_per_million is None
    assert found.usd_per_million_output is None
