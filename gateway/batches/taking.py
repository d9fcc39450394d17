"""The providers that take batches, as a runner reaches them."""

from collections.abc import Mapping
from dataclasses import dataclass

from backends.pinned import PinnedTransport
from backends.providers import PROVIDER_KINDS
from backends.reach import Reach
from backends.secret import Secret
from gateway.batches.onward import batch_providers
from gateway.batches.remote import Remote
from gateway.config.credentials import provider_keys
from gateway.config.settings import Settings
from gateway.errors import ConfigError
from gateway.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Taking:
    """`secrets` may stand in nothing that clients read."""

    remote: Remote
    secrets: tuple[Secret, ...] = ()


def taking_batches(
    settings: Settings, runtime: Runtime, environ: Mapping[str, str]
) -> dict[str, Taking]:
    """By name. Raises `ConfigError` for one without an address or without its key."""
    found: dict[str, Taking] = {}
    taking = {name: settings.providers[name] for name in sorted(batch_providers(settings))}
    for name, key in provider_keys(taking, environ).items():
        provider = taking[name]
        address = runtime.providers[name] or PROVIDER_KINDS[provider.kind].addresses.get(name)
        if address is None:
            raise ConfigError([f"providers.{name}.base_url: needed, `{name}` is not a known name"])
        transport = PinnedTransport(Reach(provider.networks))
        found[name] = Taking(Remote(address, key, transport), () if key is None else (key,))
    return found
