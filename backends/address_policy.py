"""Rules for the addresses that a target's name may lead to, applied at each connection.

A name is looked up once for each connection, every address that it has is judged, and the
connection goes to one of those that were judged: a name that answers differently the next moment
changes nothing. Ranges are those of IANA's special-purpose registries, as `ipaddress` has them;
an IPv4 address inside an IPv6 one (mapped, compatible, 6to4, Teredo, NAT64) is judged as itself.

Who states an address as digits has said where it lies and may mean a private one. Where clouds
keep their machines' credentials (link-local and the like) nothing leads unless it is listed.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address
NAT64 = IPv6Network("64:ff9b::/96")
COMPATIBLE = IPv6Network("::/96")
LOCALHOST = "localhost"
# Metadata services outside of link-local: AWS over IPv6, Alibaba, Oracle, Azure's wire server.
METADATA = frozenset(
    ip_address(name)
    for name in ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
)


class AddressPolicy(NamedTuple):
    """`networks`: CIDRs that a name may lead to beside public ones; `inside`: to private ones."""

    networks: tuple[str, ...] = ()
    inside: bool = False

    def is_refused(self, address: Address, *, stated: bool = False) -> str | None:
        """Why not there, or None. `stated`: the configuration has this very address."""
        forms = (address, *_embedded_addresses(address))
        if any(form in ip_network(net) for form in forms for net in self.networks):
            return None
        for form in forms:
            if form in METADATA or form.is_link_local:
                return "where machines keep their credentials"
            if form.is_multicast or form.is_unspecified:
                return "no address of one machine"
        known = forms[-1]
        if stated or self.inside or known.is_global:
            return None
        return "a private address"


PUBLIC = AddressPolicy()
INSIDE = AddressPolicy(inside=True)


def parse_address(host: str) -> Address | None:
    """Return the address that a host is, if it is one in plain digits."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _embedded_addresses(address: Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses inside an IPv6 address, which a translator would send it to."""
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    compatible = address in COMPATIBLE and int(address) > 1  # `::` and `::1` are their own
    if compatible or address in NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def is_network(text: str) -> bool:
    """Return whether a text is a network, such as `10.0.0.0/8`."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return True
