"""Policies as they are written: clocks, weights, and what editors are told of them."""

import pytest
from pydantic import ValidationError

from gateway.config.editors import json_schema
from gateway.config.schema_policies import PolicyRuleSection, TimesSection
from gateway.config.settings import Settings, parse
from gateway.policies.sets import written


def test_a_bare_clock_is_the_clock_that_was_meant():
    """YAML reads 22:00 as a number, 06:00 as a text."""
    assert TimesSection.model_validate({"starts": 1320, "ends": "06:00"}).starts == "22:00"
    assert TimesSection.model_validate({"ends": 1440}).ends == "24:00"
    for given in (True, 1441, -1, "7:00", "24:01"):
        with pytest.raises(ValidationError):
            TimesSection.model_validate({"starts": given})


def test_editors_complete_all_of_it():
    schema = json_schema()
    rule = schema["$defs"]["PolicyRuleSection"]["properties"]
    match = schema["$defs"]["MatchSection"]["properties"]
    assert {"candidates", "weights", "canary", "shadow", "max_quality_loss"} <= set(rule)
    assert {"when", "times"} <= set(match)
    assert all("description" in rule[name] for name in ("candidates", "weights", "shadow"))
    assert schema["$defs"]["TimesSection"]["properties"]["days"]["items"]["enum"][0] == "mon"


def test_a_set_is_written_as_it_is_read():
    rule = PolicyRuleSection.model_validate(
        {
            "name": "night",
            "match": {"when": "stream", "times": [{"days": ["fri"], "starts": 1320}]},
            "weights": {"openai/x": 3},
            "canary": {"target": "openai/y", "percent": 2.5},
            "shadow": True,
        }
    )
    text = written(Settings(policies=(rule,)))
    again = parse(
        "providers: {openai: {api_key_env: K}}\n"
        'models: {m: {targets: ["openai/x", "openai/y"]}}\n' + text,
        name="x",
    )
    assert again.policies == (rule,)
