"""A name of LiteLLM's that cannot be called is refused by `check`, with the reason and the fix."""

import json

import pytest

from backends.provider_refusals import KINDS, REFUSED
from backends.provider_table import LISTED, SPEAKS_CHAT
from gateway.config.checks.provider_names import (
    check_adapter_names,
    check_adapter_needs,
    vendor_of,
)
from gateway.config.schema import Settings

PLACE = "https://x.example/v1"


def settings(prefix: str, **more: object) -> Settings:
    provider = {"kind": "litellm", "litellm_prefix": prefix, "api_key_env": "K", **more}
    return Settings.model_validate_json(json.dumps({"providers": {"there": provider}}))


def names(prefix: str, **more: object) -> list[str]:
    return [
        f"{fault.path}: {fault.message}" for fault in check_adapter_names(settings(prefix, **more))
    ]


def needs(prefix: str, environ: dict[str, str] | None, **more: object) -> list[str]:
    faults = check_adapter_needs(settings(prefix, **more), environ)
    return [f"{fault.path}: {fault.message}" for fault in faults]


@pytest.mark.parametrize("prefix", sorted(REFUSED))
def test_a_name_that_no_request_can_go_to_is_refused(prefix: str) -> None:
    (fault,) = names(prefix)
    assert fault == f"providers.there.kind: `{prefix}` {REFUSED[prefix]}"
    assert ": " in REFUSED[prefix]  # what to do instead


@pytest.mark.parametrize("prefix", sorted(LISTED))
def test_every_other_name_is_taken(prefix: str) -> None:
    served = sorted(KINDS.get(prefix, ("chat",)))
    assert names(prefix, kinds=served) == []
    if prefix in KINDS:
        (fault,) = names(prefix)
        assert f"serves nothing else: `kinds: [{', '.join(served)}]`" in fault


def test_a_name_that_litellm_does_not_have_is_refused() -> None:
    (fault,) = names("perplexty")
    assert "no provider named `perplexty`; did you mean `perplexity`" in fault
    assert names("perplexty", kind="openai") == []


def test_what_it_needs_is_named() -> None:
    (fault,) = needs("azure", {})
    assert fault.startswith("providers.there.base_url: is needed")
    assert needs("azure", {}, base_url=PLACE) == needs("azure", {"AZURE_API_BASE": PLACE}) == []
    (fault,) = needs("custom", {"": PLACE})
    assert fault.startswith("providers.there.base_url: is needed")
    assert needs("triton", {}, base_url="https://x.example/v2/models/m/generate") == []
    (fault,) = needs("triton", {}, base_url="https://x.example")
    assert fault == "providers.there.base_url: must end with `/generate` or `/infer`"
    (fault,) = needs("predibase", {})
    assert "`PREDIBASE_TENANT_ID` is not set" in fault
    assert needs("predibase", {"PREDIBASE_TENANT_ID": "t"}) == needs("predibase", None) == []
    assert [needs(prefix, {}) for prefix in SPEAKS_CHAT] == [[]] * len(SPEAKS_CHAT)


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (fault,) = needs("vertex_ai", {})
    assert "needs the Python package of `google.auth`" in fault
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert needs("vertex_ai", {}) == []


@pytest.mark.parametrize(
    ("name", "given", "vendor"),
    [
        ("openai", {}, "openai"),
        ("openai", {"base_url": PLACE}, ""),
        ("flex", {"base_url": "https://api.openai.com/v1/"}, "openai"),
        ("east", {"litellm_prefix": "azure", "base_url": "https://one.openai.azure.com"}, "azure"),
        ("own", {"base_url": PLACE}, ""),
        ("like", {"litellm_prefix": "openai", "base_url": PLACE}, ""),
    ],
)
def test_whose_api_it_is_by_prefix_or_known_address(name: str, given: dict, vendor: str) -> None:
    kind = "litellm" if "litellm_prefix" in given else "openai"
    provider = {"kind": kind, "api_key_env": "K", **given}
    found = Settings.model_validate({"providers": {name: provider}}).providers[name]
    assert vendor_of(name, found) == vendor
