"""Check for addresses in private networks that `networks` does not allow.

A name that resolves to a private address is refused at each connection unless `networks` lists it
(`backends.address_policy`). A numeric private address is allowed; the check notes it, because it is
more often an own engine.
"""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from backends.address_policy import LOCALHOST, Address, AddressPolicy, is_network, parse_address
from gateway.config.faults import ConfigFault, Place, warning
from gateway.config.schema import Settings

INNER = (
    *(".local", ".internal", ".lan", ".svc", ".intranet", ".corp", ".home", ".private"),
    *(".localdomain", ".home.arpa"),
)


class NamedHost(NamedTuple):
    """Host that a setting names, and the networks that it may lie in."""

    place: Place
    host: str
    networks: tuple[str, ...]


def check_private_hosts(
    settings: Settings, addresses: Mapping[str, Sequence[str]]
) -> Iterator[ConfigFault]:
    """Yield faults of hosts in private networks; `addresses` maps resolved names to addresses."""
    for named in named_hosts(settings):
        found = next(
            (address for text in addresses.get(named.host, ()) if (address := parse_address(text))
             and _is_refused(named, address)), None,
        )  # fmt: skip
        place = (*named.place[:-1], "networks")
        upon = (place,)
        literal = parse_address(named.host)
        if literal is not None:
            if _is_refused(named, literal) and not literal.is_loopback:
                words = f"`{named.host}` is a private address: set `networks: [{_net(literal)}]`"
                engines = " if it is a provider, or name an engine of yours in a pool's `endpoints`"
                is_provider = named.place[0] == "providers"
                yield warning(named.place, words + (engines if is_provider else ""), upon=upon)
        elif found is not None:
            words = (
                f"`{named.host}` resolves to {found}, a private address: the gateway does "
                "not connect"
            )
            yield warning(named.place, f"{words} unless `networks: [{_net(found)}]`", upon=upon)
        elif not named.networks and named.host not in addresses and is_inner(named.host):
            words = (
                f"`{named.host}` looks like a name of a private network: the gateway does "
                "not connect"
            )
            yield warning(
                named.place, f"{words} there unless `networks` lists it, as 10.0.0.0/8", upon=upon
            )


def named_hosts(settings: Settings) -> Iterator[NamedHost]:
    for name, provider in settings.providers.items():
        if host := _host(provider.base_url):
            yield NamedHost(("providers", name, "base_url"), host, provider.networks)
    if host := _host(settings.oidc.issuer):
        yield NamedHost(("oidc", "issuer"), host, settings.oidc.networks)


def is_inner(host: str) -> bool:
    """Return whether a name is unknown to public name servers: one word, or a private domain."""
    name = host.lower().rstrip(".")
    return name != LOCALHOST and ("." not in name or name.endswith(INNER))


def _host(url: str | None) -> str:
    try:
        return urlsplit(url or "").hostname or ""
    except ValueError:  # reported by another check
        return ""


def _is_refused(named: NamedHost, address: Address) -> bool:
    networks = tuple(text for text in named.networks if is_network(text))
    if named.host == LOCALHOST and address.is_loopback:
        return False
    return AddressPolicy(networks).is_refused(address) is not None


def _net(address: Address) -> str:
    """Return the usual private network that contains the address, else the address alone."""
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fd00::/8"):
        if address in ip_network(text):
            return text
    return f"{address}/{address.max_prefixlen}"
