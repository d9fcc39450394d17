"""What one field may hold: numbers that are numbers, words that are words, names of variables."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from gateway.config.schema import (
    GpuSection,
    PolicyRuleSection,
    ProviderSection,
    Settings,
)
from gateway.config.schema_limits import BudgetSection


@pytest.mark.parametrize(
    ("section", "given"),
    [
        (PolicyRuleSection, {"name": "x", "kv_headroom_floor": False}),  # a bare `off`
        (PolicyRuleSection, {"name": "x", "kv_headroom_floor": "of"}),
        (PolicyRuleSection, {"name": "x", "kv_headroom_floor": 2}),
        (GpuSection, {"type": "H200", "usd_per_hour": "0.0000000000001"}),
        (GpuSection, {"type": "H200", "usd_per_hour": 10_000_000}),
        (BudgetSection, {"scope": "global", "usd": "NaN"}),
        (ProviderSection, {"api_key_env": "sk-proj-1234"}),
        (Settings, {"models": {"a": "passthru"}}),
        (Settings, {"models": {"a": 3}}),
    ],
)
def test_what_a_field_cannot_mean_is_refused(section, given):
    with pytest.raises(ValidationError):
        section.model_validate(given)


@pytest.mark.parametrize("name", ["", "a\r\nx-evil: 1", "süß", "a" * 201])
def test_a_name_that_no_header_can_carry_is_refused(name):
    with pytest.raises(ValidationError):
        Settings(models={name: {"targets": ["openai/gpt-4o-mini"]}})
    with pytest.raises(ValidationError):
        PolicyRuleSection(name=name)
    assert PolicyRuleSection(name="a name: 1").name == "a name: 1"


def test_what_it_can_mean_is_read():
    assert PolicyRuleSection.model_validate(
        {"name": "x", "kv_headroom_floor": "off"}
    ).kv_headroom_floor
    assert PolicyRuleSection.model_validate(
        {"name": "x", "kv_headroom_floor": 0.2}
    ).kv_headroom_floor
    assert BudgetSection.model_validate(
        {"scope": "global", "usd": 1, "hard": False}
    ).usd == Decimal(1)
    assert ProviderSection.model_validate(
        {"api_key_env": "OPENAI_API_KEY", "simulated": True}
    ).simulated
    models = Settings.model_validate({"models": {"a": {"same_as": "b"}, "c/*": "passthrough"}})
    assert models.models["c/*"] == "passthrough"
