"""The section `peers`: off by default; addresses are a host and a port, and nothing else."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_peers import MOST_HOSTS, PeersSection


def test_off_by_default() -> None:
    assert (PeersSection().hosts, PeersSection().listen, PeersSection().secret_env) == (
        (),
        None,
        None,
    )


@pytest.mark.parametrize("host", ["gateway-1.gateway:9444", "10.0.0.7:9444", "[fd00::7]:1", "a:1"])
def test_addresses(host: str) -> None:
    assert PeersSection(listen=host, hosts=[host]).hosts == (host,)


@pytest.mark.parametrize(
    "host",
    ["gw", "gw:", ":94", "tcp://a:1", "a:0", "a:123456", "fd::7:1", "a:1/x", "a b:1"],
)
def test_no_addresses(host: str) -> None:
    with pytest.raises(ValidationError, match="pattern"):
        PeersSection(hosts=[host])


def test_the_secret_is_named_and_not_written_and_hosts_are_bounded() -> None:
    with pytest.raises(ValidationError):
        PeersSection(secret_env="not a variable")
    with pytest.raises(ValidationError, match="secret"):
        PeersSection(secret="x" * 32)
    with pytest.raises(ValidationError, match=str(MOST_HOSTS)):
        PeersSection(hosts=[f"host-{index}:1" for index in range(MOST_HOSTS + 1)])
