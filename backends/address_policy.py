"""Rules for the addresses that a target's host name may have, applied at each connection.

A name is resolved once for each connection, every address is checked, and the connection uses a
checked address, so a changed DNS answer has no effect. Ranges are those of IANA's special-purpose
registries, as in `ipaddress`. An IPv4 address inside an IPv6 one (mapped, compatible, 6to4, Teredo,
NAT64) is checked as itself. A literal address in the configuration may be private. Link-local and
other metadata addresses, where clouds serve machine credentials, are refused unless listed.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address
NAT64 = IPv6Network("64:ff9b::/96")
COMPATIBLE = IPv6Network("::/96")
LOCALHOST = "localhost"
# Metadata services outside link-local ranges: AWS over IPv6, Alibaba, Oracle, Azure's wire server.
METADATA = frozenset(
    ip_address(name)
    for name in ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
)


class AddressPolicy(NamedTuple):
    """Addresses allowed besides public ones. `networks`: CIDRs; `inside`: private ones too."""

    networks: tuple[str, ...] = ()
    inside: bool = False

    def is_refused(self, address: Address, *, stated: bool = False) -> str | None:
        """Return why the address is refused, or `None`.

        `stated`: the configuration has this address as a literal.
        """
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
    """Return the address if the host is a literal address, else `None`."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _embedded_addresses(address: Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses inside an IPv6 address, to which a translator would connect."""
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
