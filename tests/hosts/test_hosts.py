"""Two hosts in namespaces share a budget and a limit to the last request; `make hosts` is more."""

import json
import subprocess
import sys
from pathlib import Path

import network
import pytest

from deploy import parts

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "build" / "hosts.json"


def test_addresses_of_hosts_are_none_of_the_bridges() -> None:
    bridge = {network.CALLERS, network.DATABASE, network.TARGETS}
    hosts = {network.address_of(number) for number in range(9)}
    assert len(hosts) == 9
    assert not hosts & bridge


def test_where_namespaces_are_not_allowed_it_says_so_and_plays_nothing(monkeypatch) -> None:
    monkeypatch.setattr(network.os, "geteuid", lambda: 1000)
    assert network.impossible() == "network namespaces are made by root"
    monkeypatch.setattr(network.shutil, "which", lambda name: None)
    assert "apt-get install" in network.impossible()


@pytest.mark.long
@pytest.mark.part("postgres")
def test_two_hosts_share_a_budget_and_a_limit() -> None:
    if reason := network.impossible():
        pytest.skip(reason)
    assert parts.find_postgres() is not None
    small = ["--hosts", "2", "--workers", "1", "--rounds", "1", "--only", "budgets", "limits"]
    command = [sys.executable, str(HERE / "hosts.py"), *small]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = {line["figure"]: line["value"] for line in json.loads(OUT.read_text())["figures"]}
    assert figures["limit: let in"] == 60
    assert figures["limit: asked"] > 120
    assert (figures["lost"], figures["duplicated"], figures["overspent_pusd"]) == (0, 0, 0)
