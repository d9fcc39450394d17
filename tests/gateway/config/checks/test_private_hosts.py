"""Providers and issuers inside private networks are told, unless `networks` lists them."""

import pytest

from gateway.config.checks.private_hosts import check_private_hosts, is_inner
from gateway.config.schema import Settings


def told(url: str, networks: tuple[str, ...] = (), **addresses: str) -> list[str]:
    provider = {"base_url": url, "networks": networks}
    settings = Settings.model_validate({"providers": {"p": provider}})
    where = {name.replace("_", "."): (text,) for name, text in addresses.items()}
    faults = list(check_private_hosts(settings, where))
    assert {fault.severity for fault in faults} <= {"warning"}
    return [f"{fault.path}: {fault.message}" for fault in faults]


@pytest.mark.parametrize(
    ("url", "net"),
    [
        ("http://10.1.2.3:8000/v1", "10.0.0.0/8"), ("http://192.168.1.4/v1", "192.168.0.0/16"),
        ("http://172.20.0.2/v1", "172.16.0.0/12"), ("http://[fd00::7]:8000/v1", "fd00::/8"),
        ("http://100.64.3.1/v1", "100.64.0.0/10"), ("http://[::ffff:10.0.0.1]/v1", "/128"),
    ],
)  # fmt: skip
def test_a_private_address_in_digits_is_told(url, net) -> None:
    (line,) = told(url)
    assert line.startswith("providers.p.base_url: ")
    assert f"{net}]`" in line
    assert told(url, ("0.0.0.0/0", "::/0")) == []


@pytest.mark.parametrize(
    "host", ["vllm", "llm.internal", "x.svc.cluster.local", "gpu.lan", "A.CORP"]
)
def test_a_private_name_is_told(host) -> None:
    (line,) = told(f"http://{host}:8000/v1")
    assert "`networks`" in line
    assert told(f"http://{host}:8000/v1", ("10.0.0.0/8",)) == []


def test_a_name_is_judged_by_where_it_leads() -> None:
    (line,) = told("https://llm.example.com/v1", llm_example_com="10.9.0.1")
    assert "resolves to 10.9.0.1, a private address" in line
    assert "networks: [10.0.0.0/8]" in line
    assert told("https://llm.example.com/v1", ("10.0.0.0/8",), llm_example_com="10.9.0.1") == []
    assert told("https://llm.example.com/v1", ("10.1.0.0/16",), llm_example_com="10.9.0.1")
    assert told("https://llm.example.com/v1", llm_example_com="8.8.8.8") == []
    assert told("https://llm.internal/v1", llm_internal="8.8.8.8") == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9/v1", "http://localhost:9/v1", "http://[::1]:9/v1", "https://8.8.8.8/v1",
     "https://api.openai.com/v1", "http://[bad/v1"],
)  # fmt: skip
def test_this_machine_and_public_hosts_are_not_told(url) -> None:
    assert told(url) == []


def test_an_issuer_is_judged_likewise() -> None:
    settings = Settings.model_validate({"oidc": {"issuer": "https://sso.internal"}})
    (fault,) = check_private_hosts(settings, {})
    assert fault.path == "oidc.issuer"


def test_names_that_no_public_server_knows() -> None:
    assert is_inner("vllm")
    assert is_inner("vllm.local.")
    assert not is_inner("api.openai.com")
    assert not is_inner("localhost")
