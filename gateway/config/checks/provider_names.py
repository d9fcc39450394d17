"""Checks of LiteLLM's provider names that need more configuration, or cannot be called.

The faults appear at the start, before the first request.
"""

import importlib.util
from collections.abc import Iterator, Mapping

from backends.provider_refusals import KINDS, NEEDS, REFUSED, AdapterNeeds
from backends.provider_table import LISTED
from backends.providers import ADAPTER_KIND, PROVIDER_KINDS, ProviderKind, wire_of
from gateway.config.faults import ConfigFault, Place, suggest, warning
from gateway.config.schema import ProviderSection, Settings


def prefix_of(name: str, provider: ProviderSection) -> str:
    """Return LiteLLM's name of a provider."""
    return provider.litellm_prefix or name


def vendor_of(name: str, provider: ProviderSection) -> str:
    """Return the vendor whose API a provider is; "" if unknown.

    Without an address, the prefix names the vendor. So does a stated prefix of a vendor without
    public addresses, such as Azure. Any other server may only use a vendor's protocol.
    """
    address = provider.base_url
    if address is None:
        return prefix_of(name, provider)
    public = {
        prefix: known.rstrip("/")
        for kind in PROVIDER_KINDS.values()
        for prefix, known in kind.addresses.items()
    }
    for prefix, known in public.items():
        if known == address.rstrip("/"):
            return prefix
    stated = provider.litellm_prefix or ""
    return "" if stated in public else stated


def wire_of_provider(name: str, provider: ProviderSection) -> ProviderKind:
    """Return the wire dialect of a configured provider."""
    return wire_of(provider.kind, prefix_of(name, provider))


def check_adapter_names(settings: Settings) -> Iterator[ConfigFault]:
    """Yield provider names to which no request could be sent."""
    for name, provider in settings.providers.items():
        if provider.kind != ADAPTER_KIND:
            continue
        prefix = prefix_of(name, provider)
        here: Place = ("providers", name)
        if prefix in REFUSED:
            yield ConfigFault((*here, "kind"), f"`{prefix}` {REFUSED[prefix]}")
        elif prefix not in LISTED:
            words = f"LiteLLM has no provider named `{prefix}`{suggest(prefix, LISTED)}"
            cure = "; name one by `litellm_prefix`, or leave `kind` out if it speaks OpenAI's API"
            yield ConfigFault((*here, "kind"), words + cure)
        elif prefix in KINDS:
            yield from _check_kinds(name, provider, prefix)


def _check_kinds(name: str, provider: ProviderSection, prefix: str) -> Iterator[ConfigFault]:
    served = KINDS[prefix]
    if not served.issuperset(provider.kinds):
        words = f"`{prefix}` serves nothing else: `kinds: [{', '.join(sorted(served))}]`"
        yield ConfigFault(("providers", name, "kinds"), words)


def check_adapter_needs(
    settings: Settings, environ: Mapping[str, str] | None
) -> Iterator[ConfigFault]:
    """Yield what LiteLLM needs before it sends a request and does not find here."""
    for name, provider in settings.providers.items():
        prefix = prefix_of(name, provider)
        if provider.kind != ADAPTER_KIND or prefix not in NEEDS or provider.simulated:
            continue
        yield from _missing(("providers", name), provider, NEEDS[prefix], environ)


def _missing(
    here: Place, provider: ProviderSection, needs: AdapterNeeds, environ: Mapping[str, str] | None
) -> Iterator[ConfigFault]:
    if needs.package and importlib.util.find_spec(needs.package.partition(".")[0]) is None:
        words = f"needs the Python package of `{needs.package}`, which is not installed here"
        yield ConfigFault((*here, "kind"), words)
    if needs.address is not None and provider.base_url is None:
        stated = environ is None or environ.get(needs.address, "").strip()
        if not (needs.address and stated):
            other = f", here or in the variable `{needs.address}`" if needs.address else ""
            yield ConfigFault((*here, "base_url"), f"is needed: it has no public address{other}")
    if needs.endings and not (provider.base_url or needs.endings[0]).endswith(needs.endings):
        words = f"must end with `{'` or `'.join(needs.endings)}`"
        yield ConfigFault((*here, "base_url"), words)
    for group in needs.variables if environ is not None else ():
        if not any(environ.get(variable, "").strip() for variable in group if environ):
            words = f"`{'` or `'.join(group)}` is not set in the environment: no request is sent"
            yield warning((*here, "kind"), words)
