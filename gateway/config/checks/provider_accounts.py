"""Checks of `billed_with`, which merges providers into one account."""

from collections.abc import Iterator

from backends.origin import address_key
from gateway.config.checks.provider_names import prefix_of, wire_of_provider
from gateway.config.faults import ConfigFault, Place, suggest, warning
from gateway.config.schema import ProviderSection, Settings

KEY = "billed_with"


def check_accounts(settings: Settings) -> Iterator[ConfigFault]:
    """Yield invalid accounts, and pairs of sections that seem to share an account."""
    for name, provider in settings.providers.items():
        if provider.billed_with is None:
            yield from _check_shared_key(settings, name, provider)
        else:
            yield from _check_billed(settings, name, provider, provider.billed_with)


def _check_billed(
    settings: Settings, name: str, provider: ProviderSection, other: str
) -> Iterator[ConfigFault]:
    here: Place = ("providers", name, KEY)
    account = settings.providers.get(other)
    if other == name:
        yield ConfigFault(here, "names the provider itself: leave it out")
    elif account is None:
        hint = suggest(other, set(settings.providers) - {name})
        yield ConfigFault(here, f"no provider named `{other}`{hint}", about=("providers", other))
    elif account.billed_with is not None:
        words = (
            f"`{other}` has no bill of its own: name the provider that sends it, "
            f"`{account.billed_with}`"
        )
        yield ConfigFault(here, words)
    elif account.simulated != provider.simulated:
        here = ("providers", name, "simulated")
        words = (
            f"`{other}`, which it is billed with, differs in `simulated`: set both alike, or leave"
            f" `{KEY}` out"
        )
        yield ConfigFault(here, words)
    if provider.billing_utc_offset is not None:
        words = f"must be set at the provider that sends the bill: `providers.{other}`"
        yield ConfigFault(("providers", name, "billing_utc_offset"), words)


def _check_shared_key(
    settings: Settings, name: str, provider: ProviderSection
) -> Iterator[ConfigFault]:
    """Warn if an earlier provider has the same address and key, which is one account."""
    if not provider.names_a_key or provider.simulated:
        return
    for other, earlier in settings.providers.items():
        if other == name:
            return
        if earlier.billed_with is None and _account(other, earlier) == _account(name, provider):
            words = (
                f"has the key of `{other}`, so one bill has both: `{KEY}: {other}` makes them one "
                "account in budgets and reconciliation"
            )
            here: Place = ("providers", name)
            yield warning(here, words, upon=(here, ("providers", other)))
            return


def _account(name: str, provider: ProviderSection) -> tuple[object, ...]:
    """Return what identifies an account: the address and the key."""
    key = (provider.api_key_env, provider.api_key_file, provider.api_key_exec)
    prefix = prefix_of(name, provider)
    address = provider.base_url or wire_of_provider(name, provider).addresses.get(prefix)
    where = (prefix,) if address is None else address_key(address)
    return (where, *key)
