"""Which gateway is meant: this host's own, until the environment names one."""

import pytest

from gateway.control.admin.gateway_address import GATEWAY, gateway_url


@pytest.mark.parametrize(("said", "meant"), [("", None), ("https://there/v1", "https://there/v1")])
def test_an_empty_variable_names_none(monkeypatch, said, meant) -> None:
    monkeypatch.setenv(GATEWAY, said)
    assert gateway_url() == meant


def test_without_it_this_hosts_own_is_meant(monkeypatch) -> None:
    monkeypatch.delenv(GATEWAY, raising=False)
    assert gateway_url() is None
