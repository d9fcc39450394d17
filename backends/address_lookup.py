"""Lookup of the addresses of a target's host name, each checked against the policy."""

import asyncio
import socket
from ipaddress import ip_address

from backends.address_policy import LOCALHOST, Address, AddressPolicy, parse_address


class AddressNotAllowed(OSError):
    """A host with an address that the target may not have; `str()` says what would allow it."""


async def resolve_addresses(host: str, port: int, reach: AddressPolicy) -> list[str]:
    """Return the addresses to connect to, all of them allowed.

    Raises `AddressNotAllowed` if any of them is not allowed, and `OSError` or `UnicodeError` if
    there is none.
    """
    literal = parse_address(host)
    if literal is not None:
        _judge(host, literal, reach, literal=True)
        return [str(literal)]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(finding[4][0]) for finding in found))
    for text in addresses:
        address = ip_address(text)
        _judge(host, address, reach, literal=host == LOCALHOST and address.is_loopback)
    return addresses


def _judge(host: str, address: Address, reach: AddressPolicy, *, literal: bool) -> None:
    why = reach.is_refused(address, stated=literal)
    if why is not None:
        raise AddressNotAllowed(
            f"{host} leads to {address}, {why}; `networks` of its provider would allow it"
        )
