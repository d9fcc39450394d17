"""Two sections of one account: what cannot be."""

import json

import pytest

from gateway.config.checks.provider_accounts import check_accounts
from gateway.config.faults import ConfigFault
from gateway.config.schema import Settings

OPENAI = {"api_key_env": "K"}
FLEX = {"litellm_prefix": "openai", "tier": "flex", "api_key_env": "K"}


def settings(**providers: object) -> Settings:
    return Settings.model_validate_json(json.dumps({"providers": providers}))


def faults(**providers: object) -> list[ConfigFault]:
    return [*check_accounts(settings(**providers))]


@pytest.mark.parametrize(
    ("flex", "path", "words"),
    [
        ({"billed_with": "flex"}, "billed_with", "names the provider itself"),
        ({"billed_with": "opnai"}, "billed_with", "no provider named `opnai`; did you mean"),
        ({"billed_with": "eu"}, "billed_with", "no bill of its own: name the provider that sends"),
        ({"billed_with": "openai", "simulated": True}, "simulated", "differs in `simulated`: set"),
        ({"billed_with": "openai", "billing_utc_offset": "-08:00"}, "billing_utc_offset",
         "must be set at the provider that sends the bill: `providers.openai`"),
    ],
)  # fmt: skip
def test_an_account_that_leads_nowhere_is_refused(flex, path, words) -> None:
    (fault,) = faults(openai=OPENAI, eu={"billed_with": "openai"}, flex={**FLEX, **flex})
    assert (fault.path, fault.severity) == (f"providers.flex.{path}", "error")
    assert words in fault.message


def test_two_that_name_each_other_are_a_chain_at_both_ends() -> None:
    found = faults(a={"billed_with": "b"}, b={"billed_with": "a"})
    assert [fault.path for fault in found] == ["providers.a.billed_with", "providers.b.billed_with"]


@pytest.mark.parametrize(
    ("flex", "told"),
    [
        ({}, True),
        ({"api_key_env": "OTHER"}, False),
        ({"base_url": "https://eu.api.openai.com/v1"}, False),
        ({"base_url": "https://api.openai.com/v1"}, True),
        ({"base_url": "HTTPS://api.OpenAI.com:443/v1/"}, True),
        ({"litellm_prefix": "groq"}, False),
        ({"simulated": True}, False),
        ({"billed_with": "openai"}, False),
    ],
)
def test_a_key_that_two_have_is_told_unless_one_bill_has_both(flex, told) -> None:
    found = faults(openai=OPENAI, flex={**FLEX, **flex})
    assert [(fault.path, fault.severity) for fault in found] == [
        ("providers.flex", "warning")
    ] * told
    assert all("`billed_with: openai`" in fault.message for fault in found)


def test_providers_without_a_key_are_no_account_of_each_other() -> None:
    assert faults(a={"base_url": "https://x.example"}, b={"base_url": "https://x.example"}) == []
