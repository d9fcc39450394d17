"""The issuer's keys: rotated, away, hammered; its documents, when they lie or are too large."""

import asyncio
import dataclasses
import socket

import httpx
import pytest

from backends.address_lookup import AddressNotAllowed
from backends.address_policy import PUBLIC, AddressPolicy
from gateway.clock import Clock
from gateway.control.oidc.issuer import (
    AGAIN_S,
    FRESH_S,
    KEPT_S,
    PAUSE_S,
    Issuer,
    IssuerUnavailable,
    reason_against_address,
)
from gateway.control.oidc.tokens import TokenRequirements


class Watch:
    """A clock that a test puts forward."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    @property
    def clock(self) -> Clock:
        return Clock(now_s=lambda: self.now_s)


@pytest.fixture
def watch() -> Watch:
    return Watch()


def issuer_of(provider, watch: Watch, reach: AddressPolicy = PUBLIC) -> Issuer:
    return Issuer(provider.rule, reach, watch.clock)


async def names(issuer: Issuer, kid: str | None) -> set[str]:
    return {str(key.kid) for key in await issuer.keys(kid)}


async def test_keys_are_fetched_once_and_kept(make_provider, watch) -> None:
    provider = make_provider()
    issuer = issuer_of(provider, watch)
    found = await asyncio.gather(*(names(issuer, "rsa-1") for _ in range(20)))
    assert found == [{"rsa-1", "ec-1"}] * 20
    watch.now_s += FRESH_S - 1
    await names(issuer, "ec-1")
    assert provider.asked == {"discovery": 1, "keys": 1}


async def test_a_rotated_key_is_known_at_once_and_the_one_before_it_goes(make_provider, watch):
    provider = make_provider()
    issuer = issuer_of(provider, watch)
    await names(issuer, "rsa-1")
    provider.rotate()
    watch.now_s += PAUSE_S
    assert await names(issuer, "rsa-2") == {"rsa-2", "ec-2"}
    provider.rotate()
    watch.now_s += FRESH_S - 1
    assert "rsa-2" in await names(issuer, "rsa-2")
    watch.now_s += 1
    assert "rsa-2" not in await names(issuer, "rsa-2")


async def test_names_that_are_made_up_cost_the_issuer_one_question(
    make_provider, watch, monkeypatch
) -> None:
    """The control: without a pause each of them is a question."""
    provider = make_provider()
    issuer = issuer_of(provider, watch)
    await names(issuer, "rsa-1")
    watch.now_s += PAUSE_S
    for number in range(200):
        await names(issuer, f"made up {number}")
    await asyncio.gather(*(names(issuer, f"another {number}") for number in range(200)))
    assert provider.asked["keys"] == 2
    monkeypatch.setattr("gateway.control.oidc.issuer.PAUSE_S", 0.0)
    for number in range(5):
        await names(issuer, f"third {number}")
    assert provider.asked["keys"] == 7


async def test_while_it_is_away_its_last_keys_go_on_for_an_hour(make_provider, watch) -> None:
    provider = make_provider()
    issuer = issuer_of(provider, watch)
    await names(issuer, "rsa-1")
    provider.stop()
    watch.now_s += KEPT_S
    assert await names(issuer, "rsa-1") == {"rsa-1", "ec-1"}
    watch.now_s += 1
    with pytest.raises(IssuerUnavailable):
        await names(issuer, "rsa-1")


async def test_one_that_was_never_there_is_asked_again_soon_and_not_by_everybody(watch) -> None:
    rule = TokenRequirements("http://127.0.0.1:9", ("a",), ("RS256",))
    issuer = Issuer(rule, PUBLIC, watch.clock)
    for _ in range(50):
        with pytest.raises(IssuerUnavailable):
            await issuer.keys("k")
    assert issuer.fetches == 1
    watch.now_s += AGAIN_S
    with pytest.raises(IssuerUnavailable):
        await issuer.keys("k")
    assert issuer.fetches == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"discovery": {"issuer": "https://elsewhere"}}, "another issuer"),
        ({"discovery": {"jwks_uri": None}}, "names no `jwks_uri`"),
        ({"discovery": {"jwks_uri": "http://elsewhere.example/keys"}}, "not https"),
        ({"discovery": {"jwks_uri": "https://10.0.0.1/keys"}}, "not its own"),
        ({"moved": "discovery"}, "answered 302"),
        ({"moved": "keys"}, "answered 302"),
        ({"large": "discovery"}, "more than"),
        ({"large": "keys"}, "more than"),
        ({"status": "keys"}, "answered 500"),
    ],
)
async def test_documents_that_lie_or_are_too_large(
    make_provider, watch, caplog, wrong, words
) -> None:
    provider = make_provider()
    provider.set(**wrong)
    with pytest.raises(IssuerUnavailable):
        await issuer_of(provider, watch).keys("rsa-1")
    assert words in caplog.text
    provider.set()
    assert await names(issuer_of(provider, watch), "rsa-1"), "the control"


async def test_a_silent_one_is_left_after_a_while(watch, monkeypatch) -> None:
    monkeypatch.setattr("gateway.control.oidc.issuer.WITHIN_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # which takes nobody in
        port = silent.getsockname()[1]
        rule = TokenRequirements(f"http://127.0.0.1:{port}", ("a",), ("RS256",))
        with pytest.raises(IssuerUnavailable):
            await Issuer(rule, PUBLIC, watch.clock).keys("k")


async def test_it_is_asked_at_an_address_that_was_judged(make_provider, watch, monkeypatch) -> None:
    """Its name leads to a private address: never connected to, unless `networks` has it."""
    provider = make_provider()
    port = provider.url.rpartition(":")[2]

    async def found(host: str, port: int, **_: object) -> list:
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", found)
    named = dataclasses.replace(provider.rule, issuer=f"http://id.example:{port}")
    provider.set(discovery={"issuer": named.issuer, "jwks_uri": f"{named.issuer}/keys"})
    with pytest.raises(IssuerUnavailable):
        await Issuer(named, PUBLIC, watch.clock).keys("rsa-1")
    assert provider.asked == {"discovery": 0, "keys": 0}
    allowed = Issuer(named, AddressPolicy(("127.0.0.0/8",)), watch.clock)
    assert await names(allowed, "rsa-1") == {"rsa-1", "ec-1"}


@pytest.mark.parametrize(
    ("issuer", "address", "good"),
    [
        ("https://id.example", "https://id.example/keys", True),
        ("https://id.example", "https://keys.example/v1", True),
        ("https://id.example", "http://id.example/keys", False),
        ("https://id.example", "https://169.254.169.254/keys", False),
        ("https://id.example", "https://localhost/keys", False),
        ("https://10.0.0.1", "https://10.0.0.1:8443/keys", True),
        ("https://10.0.0.1", "https://10.0.0.2/keys", False),
        ("http://127.0.0.1:1", "http://127.0.0.1:2/keys", True),
        ("https://id.example", "file:///etc/passwd", False),
    ],
)
def test_where_keys_may_lie(issuer, address, good) -> None:
    assert (reason_against_address(issuer, address) is None) is good


def test_errors_of_addresses_are_connections_that_failed() -> None:
    """What `_fetch` counts on: whoever is misdirected is told as a failed connection."""
    assert issubclass(AddressNotAllowed, OSError)
    assert issubclass(httpx.ConnectError, httpx.HTTPError)
