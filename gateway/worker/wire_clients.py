"""Wire clients of a worker: one per engine replica and provider."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.address_policy import INSIDE, AddressPolicy
from backends.base import Backend
from backends.http import HttpClient
from backends.openai import Credentials, OpenAIBackend
from backends.providers import ProviderSite, wire_of
from gateway.config.credentials import engine_key, provider_keys
from gateway.config.settings import PoolSection, ProviderSection, Settings
from gateway.errors import ConfigError
from gateway.fleet.fleet import Fleet


@dataclass(frozen=True, slots=True)
class HttpClients:
    """HTTP clients of a worker, one for engines and one for APIs.

    Engines close idle connections within seconds. APIs keep them, and a new TLS handshake is slow.
    """

    engines: HttpClient
    apis: HttpClient

    async def aclose(self, fleet: Fleet) -> None:
        """Close both clients and the backends that use them."""
        for backend in fleet.backends.values():
            await backend.aclose()
        await self.engines.aclose()
        await self.apis.aclose()


def make_backends(
    clients: HttpClients, settings: Settings, environ: Mapping[str, str]
) -> Callable[[str, PoolSection | ProviderSection, str | None], Backend]:
    """Return a function that makes the wire client of an engine replica or a provider.

    The function raises `ConfigError` for a provider whose address is unknown.
    """
    keys = provider_keys(settings.providers, environ)

    def make(name: str, what: PoolSection | ProviderSection, base_url: str | None) -> Backend:
        if isinstance(what, PoolSection):
            assert base_url is not None  # every engine replica has an address
            proof = Credentials(engine_key(what.engine, name, environ))
            return OpenAIBackend(base_url, proof, client=clients.engines, reach=INSIDE)
        key, reach = keys[name], AddressPolicy(what.networks)
        prefix = what.litellm_prefix or name
        kind = wire_of(what.kind, prefix)
        address = base_url or kind.addresses.get(prefix)
        if address is None and not kind.finds_address:
            raise ConfigError([f"providers.{name}.base_url: needed, `{name}` is not a known name"])
        proof = Credentials(key)
        return kind.client(ProviderSite(prefix, address, proof, reach, clients.apis, what.betas))

    return make
