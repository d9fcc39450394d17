"""Looks up the addresses that a target's name has, and judges every one of them."""

import asyncio
import socket
from ipaddress import ip_address

from backends.address_policy import LOCALHOST, Address, AddressPolicy, parse_address


class AddressNotAllowed(OSError):
    """A host that leads where its target may not be; `str()` says what would allow it."""


async def resolve_addresses(host: str, port: int, reach: AddressPolicy) -> list[str]:
    """Return the addresses to connect to, each allowed.

    Raises `AddressNotAllowed` if a single one is not, and `OSError` or `UnicodeError` without any.
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
