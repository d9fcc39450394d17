"""Provider accounts: which provider's bill contains the requests of another one.

Two sections of one account, such as a standard and a `flex` tier, have one bill. `billed_with`
names the section that stands for the account in the ledger, in budgets and in reconciliation.
`gateway.config.checks.provider_accounts` checks the setting.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the settings classes take 0.1 s to import
    from gateway.config.schema import Settings


def sender_of_bills(settings: "Settings", name: str) -> str:
    """Return the provider whose bill contains the requests that a provider serves."""
    provider = settings.providers.get(name)
    return name if provider is None else provider.sends_bills(name)


def separate_accounts(settings: "Settings") -> tuple[str, ...]:
    """Return the providers that send bills, in the order of the configuration."""
    return tuple(name for name, given in settings.providers.items() if given.billed_with is None)
