"""What a name may lead to: every special range, in every form that an address may have."""

from ipaddress import ip_address

import pytest

from backends.address_policy import INSIDE, PUBLIC, AddressPolicy, parse_address

PRIVATE = [
    "127.0.0.1", "127.255.0.3", "10.0.0.7", "172.16.0.1", "192.168.1.1", "100.64.0.1", "0.1.2.3",
    "192.0.2.1", "198.18.0.1", "240.0.0.1", "255.255.255.255", "::1", "fc00::1", "fd12::9",
    "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.7", "64:ff9b::7f00:1", "2002:7f00:1::",
    "2002:a00:7::1", "::7f00:1",
]  # fmt: skip
NEVER = [
    "169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "100.100.100.200",
    "168.63.129.16", "192.0.0.192", "0.0.0.0", "::", "224.0.0.1", "ff02::1",
    "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::a9fe:a9fe",
]  # fmt: skip
PUBLIC_ONES = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("text", PRIVATE)
def test_a_private_address_is_for_who_is_told_or_says_it(text) -> None:
    address = ip_address(text)
    assert PUBLIC.is_refused(address) is not None
    assert AddressPolicy(("203.0.113.0/24",)).is_refused(address) is not None
    assert (
        AddressPolicy((f"{text}/32" if address.version == 4 else f"{text}/128",)).is_refused(
            address
        )
        is None
    )
    assert INSIDE.is_refused(address) is PUBLIC.is_refused(address, stated=True) is None


@pytest.mark.parametrize("text", NEVER)
def test_credentials_of_machines_are_nobodys_target(text) -> None:
    address = ip_address(text)
    for reach in (PUBLIC, INSIDE):
        assert reach.is_refused(address) is not None
        assert reach.is_refused(address, stated=True) is not None


def test_a_listed_network_opens_even_those() -> None:
    reach = AddressPolicy(("169.254.10.0/24",))
    assert reach.is_refused(ip_address("169.254.10.9")) is None
    assert reach.is_refused(ip_address("::ffff:169.254.10.9")) is None
    assert reach.is_refused(ip_address("169.254.169.254")) is not None


@pytest.mark.parametrize("text", PUBLIC_ONES)
def test_public_addresses_are_free(text) -> None:
    assert PUBLIC.is_refused(ip_address(text)) is None


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "017700000001", "127.1", "localhost."])
def test_what_only_a_resolver_reads_as_an_address_is_a_name(host) -> None:
    assert parse_address(host) is None
