"""An exchange between hosts beside the rest of the configuration."""

import pytest

from gateway.config.crosschecks_peers import MOST_ENGINES, check_peers
from gateway.config.schema import Settings
from gateway.config.settings import ConfigError, parse
from gateway.fleet.peers.frames import MOST_ENTRIES

GOOD = {"listen": "0.0.0.0:9444", "hosts": ["b:9444"], "secret_env": "S"}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, []),
        (GOOD, []),
        ({"listen": None, "hosts": [], "secret_env": None}, []),
        (GOOD | {"hosts": []}, ["listen: has no effect", "secret_env: has no effect"]),
        ({"hosts": ["b:9444"]}, ["listen: is required", "secret_env: is required"]),
        (GOOD | {"listen": "0.0.0.0:8080"}, ["listen: port 8080 is also `server.port`"]),
        (GOOD | {"listen": "0.0.0.0:70000"}, ["listen: no port is beyond 65535"]),
        (GOOD | {"hosts": ["b:70000"]}, ["hosts.0: `b:70000`: no port"]),
        (GOOD | {"hosts": ["b:1", "c:1", "b:1"]}, ["hosts.2: `b:1` is stated twice"]),
    ],
)
def test_what_an_exchange_needs(said, words) -> None:
    found = [
        f"{'.'.join(map(str, fault.place[1:]))}: {fault.message}"
        for fault in check_peers(Settings(peers=said))
    ]
    assert len(found) == len(words)
    assert all(finding.startswith(word) for finding, word in zip(found, words, strict=True)), found


def test_the_dashboards_port_is_taken_while_there_is_one() -> None:
    at = GOOD | {"listen": "0.0.0.0:8501"}
    shown = [
        fault.message for fault in check_peers(Settings(peers=at, dashboard={"enabled": True}))
    ]
    assert shown == ["port 8501 is also `dashboard.port`: name another"]
    assert not list(check_peers(Settings(peers=at, dashboard={"enabled": False})))


def test_all_engines_fit_into_a_message() -> None:
    assert MOST_ENGINES <= MOST_ENTRIES
    urls = [f"http://10.0.0.5:{port}/v1" for port in range(8000, 8001 + MOST_ENGINES)]
    engine = {"kind": "simulated", "endpoints": urls}
    pools = {"a": {"engine": engine, "gpu": {"type": "H200"}}}
    faults = [fault.message for fault in check_peers(Settings(peers=GOOD, pools=pools))]
    assert faults == [f"hosts exchange the load of 500 engines at most, not of {MOST_ENGINES + 1}"]


def test_every_start_refuses_it_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"peers\.secret_env.*is required"):
        parse("peers:\n  listen: 0.0.0.0:9444\n  hosts: [b:1]\n", name="t")
