"""Every place a request can go: replicas of a pool, models of a provider, pass-through."""

from dataclasses import replace

import msgspec
import pytest

from gateway.config.schema import ProviderSection
from gateway.config.settings import resolve_model
from gateway.fleet import fleet as fleet_module
from gateway.fleet.fleet import Fleet, _on_disconnect, _takes_marks
from router.types import Feature


def targets(stack, name: str):
    logical, model = resolve_model(stack.settings, name)
    return stack.planner._routes._fleet.targets(logical, model)


def test_targets_carry_what_routing_and_money_need(stack) -> None:
    own, api = targets(stack, "chat")
    assert (own.name, own.pool, own.replica, own.provider) == ("pool:main/0", "main", "0", None)
    assert own.rate_pusd_per_hour == 3_500_000_000_000
    assert own.simulated
    assert (api.name, api.provider, api.upstream_model) == ("alpha/m", "alpha", "m")
    assert api.price_name == "openai/gpt-4o-mini"
    assert api.replica is None


def test_aliases_share_and_pass_through_shares_the_providers_row(stack) -> None:
    assert targets(stack, "gpt-4o") is targets(stack, "chat")
    (item,), (two,) = targets(stack, "alpha/one"), targets(stack, "alpha/two/with/slashes")
    assert item.row == two.row == stack.runtime.apis.index("alpha/*")
    assert two.upstream_model == "two/with/slashes"
    assert item.backend is two.backend


def test_invented_names_are_remembered_up_to_a_limit(stack, monkeypatch) -> None:
    monkeypatch.setattr(fleet_module, "PASSTHROUGH_LIMIT", 3)
    fleet = Fleet(stack.settings, stack.runtime, lambda *_: None)
    for number in range(10):
        _, model = resolve_model(stack.settings, f"alpha/{number}")
        (target,) = fleet.targets(f"alpha/{number}", model)
        assert target.upstream_model == str(number)
    assert len(fleet._apis) == max(3, len({name for name in fleet._apis if name.count("/m")}))


def test_every_wire_client_can_be_closed(stack) -> None:
    backends = stack.planner._routes._fleet.backends
    assert set(backends) == {
        "pool:main/0", "pool:embed/0", "alpha", "beta", "late", "steady",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("base_url", "changes", "fetches"),
    [
        ("https://api.example.com/v1", {}, True),
        (None, {}, True),
        ("http://8.8.8.8/v1", {}, True),
        ("https://api.example.com/v1", {"networks": ("10.0.0.0/8",)}, False),
        ("https://api.example.com/v1", {"kind": "litellm"}, False),  # it fetches some by itself
        ("http://10.0.0.7/v1", {}, False),
        ("http://localhost:8000/v1", {}, False),
        ("http://10.0.0.7/v1", {"features": ("images", "media_urls")}, True),
    ],
)
def test_only_an_api_outside_fetches_what_a_request_names(
    stack, base_url, changes, fetches
) -> None:
    providers = dict(stack.settings.providers)
    providers["alpha"] = providers["alpha"].model_copy(update=changes)
    changed = stack.settings.model_copy(update={"providers": providers})
    runtime = msgspec.structs.replace(
        stack.runtime, providers={**stack.runtime.providers, "alpha": base_url}
    )
    fleet = Fleet(changed, runtime, lambda *_: None)
    (api,) = fleet.targets("api", changed.models["api"])
    assert (Feature.MEDIA_URLS in api.features) is fetches


def test_an_engine_of_ours_is_told_that_it_may_fetch(stack) -> None:
    pools = {
        name: pool.model_copy(
            update={"engine": pool.engine.model_copy(update={"features": ("images",)})}
        )
        for name, pool in stack.settings.pools.items()
    }
    changed = stack.settings.model_copy(update={"pools": pools})
    fleet = Fleet(changed, stack.runtime, lambda *_: None)
    (own, *_) = fleet.targets("own", changed.models["own"])
    assert own.features == {Feature.IMAGES}


def test_marks_of_what_to_cache_go_where_they_are_understood(stack) -> None:
    providers = {
        "anthropic": {"kind": "litellm", "api_key_env": "A"},
        "claude": {"kind": "litellm", "litellm_prefix": "bedrock", "api_key_env": "A"},
        "gemini": {"kind": "litellm", "api_key_env": "A"},
        "openai": {"api_key_env": "A"},
    }
    taken = {
        name: _takes_marks(ProviderSection(**provider), name)
        for name, provider in providers.items()
    }
    assert taken == {"anthropic": True, "claude": True, "gemini": False, "openai": False}
    assert [target.takes_marks for target in targets(stack, "chat")] == [False, False]


@pytest.mark.parametrize(
    ("changes", "api"),
    [
        ({"base_url": None, "litellm_prefix": "openai"}, "openai"),
        ({"base_url": None}, "alpha"),
        ({"litellm_prefix": "openai"}, "alpha"),  # another server may speak like it, and be none
    ],
)
def test_books_have_the_account_and_wires_the_api(stack, changes, api) -> None:
    """A tier of `beta`'s account is served by its own section, and its bill is `beta`'s."""
    providers = dict(stack.settings.providers)
    changes = {**changes, "billed_with": "beta"}
    providers["alpha"] = providers["alpha"].model_copy(update=changes)
    changed = stack.settings.model_copy(update={"providers": providers})
    fleet = Fleet(changed, stack.runtime, lambda *_: None)
    (target,) = fleet.targets("api", changed.models["api"])
    assert (target.name, target.section, target.api) == ("alpha/m", "alpha", api)
    assert target.provider == "beta"
    own = targets(stack, "chat")[0]
    assert (own.provider, own.section, own.api) == (None, None, None)


def test_another_rate_is_every_targets_of_its_pool(stack) -> None:
    fleet = Fleet(stack.settings, stack.runtime, lambda *_: None)
    logical, model = resolve_model(stack.settings, "chat")
    before = fleet.targets(logical, model)
    assert not fleet.rerate({"main": before[0].rate_pusd_per_hour, "of another host": 5})
    assert fleet.targets(logical, model) is before
    assert fleet.rerate({"main": 7})
    assert fleet.targets(logical, model)[0].rate_pusd_per_hour == 7
    assert fleet.targets(logical, model)[1:] == before[1:]
    assert fleet.rerate({"main": None})
    assert fleet.targets(logical, model)[0].rate_pusd_per_hour is None


@pytest.mark.parametrize(
    ("name", "provider", "term"),
    [
        ("openrouter", {}, "continues"),
        ("openrouter", {"on_disconnect": "stops"}, "stops"),
        ("openrouter", {"on_disconnect": "unknown"}, "unknown"),
        ("openai", {}, "unknown"),
        ("standin", {"start": True, "simulated": True}, "stops"),
        ("standin", {"start": True, "simulated": True, "on_disconnect": "continues"}, "continues"),
    ],
)
def test_what_is_configured_counts_before_what_is_documented(name, provider, term) -> None:
    assert _on_disconnect(ProviderSection(**provider), name) == term


def test_an_engine_stops_and_only_who_says_so_of_the_others(stack) -> None:
    own, api = targets(stack, "chat")
    assert not own.goes_on
    assert not api.goes_on
    for term, goes_on in (("stops", False), ("continues", True), ("unknown", True)):
        assert replace(api, on_disconnect=term).goes_on is goes_on
