"""Every profile says what it is, where it comes from and what it misses."""

import pytest

from backends.simulator.profiles import DATA, PROFILES


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_profile_is_complete_and_plausible(name):
    profile = PROFILES[name]
    assert profile.name == name
    assert profile.source
    assert profile.licence
    assert profile.measured.startswith("20")
    assert "%" in profile.errors
    assert profile.shape.context_tokens <= profile.shape.kv_capacity_tokens
    step = profile.shape.step
    assert 0 < step.c_s < step.b_s < step.a_s


def test_the_h200_capacity_is_the_measured_one():
    assert PROFILES["h200-llama-3.1-8b-fp8"].shape.kv_capacity_tokens == 964_064


def test_our_own_measurements_are_shipped():
    assert (DATA / "h200_llama8b_fp8_requests.csv.gz").is_file()
