"""Who sends the bill of what a provider serves."""

from gateway.config.billing_accounts import sender_of_bills, separate_accounts
from gateway.config.checks.provider_accounts import check_accounts
from gateway.config.schema import Settings

PROVIDERS = {
    "openai": {"api_key_env": "K"},
    "flex": {
        "litellm_prefix": "openai", "tier": "flex", "api_key_env": "K", "billed_with": "openai",
    },
    "other": {},
}  # fmt: skip


def test_the_one_that_is_named_sends_the_bills_of_both() -> None:
    given = Settings.model_validate({"providers": PROVIDERS})
    assert [sender_of_bills(given, name) for name in ("openai", "flex", "other", "gone")] == [
        "openai", "openai", "other", "gone",
    ]  # fmt: skip
    assert separate_accounts(given) == ("openai", "other")
    assert [*check_accounts(given)] == []
