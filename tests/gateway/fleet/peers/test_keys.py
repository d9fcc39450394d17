"""The same engine by its address and model; a loopback address is each machine's own."""

from pathlib import Path

import pytest

from gateway.fleet.peers import keys
from gateway.fleet.peers.keys import SIZE, engine_key, network_namespace_id

URL, MODEL = "http://engine-0.engines:8000/v1", "llama"


@pytest.mark.parametrize(
    ("url", "model", "is_same"),
    [
        ("http://ENGINE-0.engines:8000/v1/", MODEL, True),
        ("http://engine-1.engines:8000/v1", MODEL, False),
        ("http://engine-0.engines:8001/v1", MODEL, False),
        ("https://engine-0.engines:8000/v1", MODEL, False),
        (URL, "llama-2", False),
    ],
)
def test_address_and_model_say_which_it_is(url, model, is_same) -> None:
    assert (engine_key(url, model, b"here") == engine_key(URL, MODEL, b"there")) is is_same
    assert len(engine_key(url, model, b"")) == SIZE


def test_a_port_that_is_left_out_is_its_schemes() -> None:
    assert engine_key("https://e/v1", MODEL, b"") == engine_key("https://e:443/v1", MODEL, b"")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]", "0.0.0.0"])
def test_a_loopback_address_means_another_engine_elsewhere(host: str) -> None:
    url = f"http://{host}:8000/v1"
    assert engine_key(url, MODEL, b"a") == engine_key(url, MODEL, b"a")
    assert engine_key(url, MODEL, b"a") != engine_key(url, MODEL, b"b")


def test_a_place_is_one_network_namespace_and_unknown_ones_are_never_equal(monkeypatch) -> None:
    assert network_namespace_id() == network_namespace_id()
    monkeypatch.setattr(keys, "_NETWORK", Path("/nowhere"))
    assert network_namespace_id() != network_namespace_id()
