"""From a LiteLLM proxy's configuration to one of ours: all of it, or a note."""

from decimal import Decimal

import pytest
import yaml

from gateway.config.crosschecks import CHECKS
from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.config.litellm_import import ImportedPrice, carry_over

GPU = {"type": "H100"}
EVERY = ["failure", "context", "content_policy"]  # where no kind of fallbacks but one is named


def entry(name: str, model: str, mode: str | None = None, **params) -> dict:
    made = {"model_name": name, "litellm_params": {"model": model, **params}}
    return made if mode is None else {**made, "model_info": {"mode": mode}}


def carried(*entries: dict, **sections):
    given = {"model_list": list(entries), **sections}
    return carry_over(given, gpu=GPU, provider_of=lambda _: None)


LOCAL = entry("llama", "hosted_vllm/meta/llama", api_base="http://10.0.0.5:8000/v1")
CLOUD = entry("cloud", "openai/gpt-4o", api_key="os.environ/KEY")


def test_entries_of_one_name_are_targets_of_one_model() -> None:
    found = carried(CLOUD, entry("cloud", "groq/llama"), CLOUD)
    assert found.document["models"] == {"cloud": {"targets": ["openai/gpt-4o", "groq/llama"]}}
    assert found.document["providers"] == {
        "openai": {"api_key_env": "KEY"}, "groq": {"api_key_env": "GROQ_API_KEY"},
    }  # fmt: skip
    assert found.notes == []


def test_engines_of_one_model_are_one_pool() -> None:
    other = entry("llama", "hosted_vllm/meta/llama", api_base="http://10.0.0.6:8000/v1")
    namesake = entry("llama", "hosted_vllm/other/llama", api_base="http://10.0.0.7:8000/v1")
    found = carried(LOCAL, other, namesake)
    pools = found.document["pools"]
    assert pools["llama"]["engine"]["endpoints"] == [
        "http://10.0.0.5:8000/v1", "http://10.0.0.6:8000/v1",
    ]  # fmt: skip
    assert pools["llama-2"]["engine"]["served_name"] == "other/llama"
    assert pools["llama"]["gpu"] == GPU
    assert found.document["models"]["llama"]["targets"] == ["pool:llama", "pool:llama-2"]
    assert [note.place for note in found.notes] == ["models.llama.compare_with"]  # nothing


def test_engines_that_are_asked_otherwise_are_another_pool() -> None:
    """One key was sent to both, and so were the members of one of them."""
    where = {"api_base": "http://10.0.0.6:8000/v1", "api_key": "os.environ/OTHER"}
    keyed = entry("llama", "hosted_vllm/meta/llama", **where)
    cold = entry("cold", "hosted_vllm/meta/llama", extra_body={"top_k": 1},
                 api_base="http://10.0.0.5:8000/v1")  # fmt: skip
    pools = carried(LOCAL, keyed, cold).document["pools"]
    engines = {name: pool["engine"] for name, pool in pools.items()}
    assert "api_key_env" not in engines["llama"]
    assert engines["llama-2"]["api_key_env"] == "OTHER"
    assert engines["llama-3"]["extra_body"] == {"top_k": 1}


def test_another_key_is_another_provider_of_the_same_prices() -> None:
    found = carried(CLOUD, entry("cloud", "openai/gpt-4o", api_key="os.environ/OTHER"))
    assert found.document["providers"]["openai-2"] == {
        "api_key_env": "OTHER", "prices_as": "openai/gpt-4o",
        "base_url": "https://api.openai.com/v1",
    }  # fmt: skip
    assert found.document["models"]["cloud"]["targets"] == ["openai/gpt-4o", "openai-2/gpt-4o"]


def test_one_key_with_two_prices_or_bodies_is_one_account() -> None:
    """LiteLLM's budget of `openai` counts both, and so does the bill."""
    cold = entry("cold", "openai/gpt-4o", api_key="os.environ/KEY", extra_body={"top_k": 1})
    warm = entry("warm", "openai/gpt-4o", api_key="os.environ/KEY", extra_body={"top_k": 2})
    found = carried(CLOUD, cold, cold, warm).document["providers"]
    assert {name: provider.get("billed_with") for name, provider in found.items()} == {
        "openai": None, "openai-2": "openai", "openai-3": "openai",
    }  # fmt: skip


def test_another_key_of_one_that_litellm_speaks_keeps_its_name_there() -> None:
    this_entry = entry("a", "bedrock/nova", api_key="os.environ/ONE")
    found = carried(this_entry, entry("a", "bedrock/nova", api_key="os.environ/OTHER"))
    assert found.document["providers"]["bedrock-2"] == {
        "kind": "litellm", "api_key_env": "OTHER", "prices_as": "bedrock/nova",
        "litellm_prefix": "bedrock",
    }  # fmt: skip


def test_what_was_carried_over_is_taken_by_check() -> None:
    found = carried(CLOUD, entry("cloud", "openai/gpt-4o", api_key="os.environ/OTHER"))
    models = {"cloud": {**found.document["models"]["cloud"], "compare_with": ["openai/gpt-4o"]}}
    text = yaml.safe_dump({**found.document, "models": models})
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    assert [fault for check in CHECKS for fault in check(settings)] == []


def test_one_address_with_two_prices_is_two_providers() -> None:
    where = {"api_base": "https://eu.example.com"}
    found = carried(entry("a", "azure/one", **where), entry("b", "azure/two", **where))
    names = {name: provider["prices_as"] for name, provider in found.document["providers"].items()}
    assert names == {
        "azure-eu.example.com": "azure/one", "azure-eu.example.com-2": "azure/two",
    }  # fmt: skip


def test_who_falls_back_asks_the_other_only_after_a_failure() -> None:
    """Equal targets before: the cheaper model answered from the first request on."""
    routing = {"fallbacks": [{"llama": ["cloud"]}, {"nobody": ["cloud"]}]}
    found = carried(LOCAL, CLOUD, router_settings=routing)
    assert found.document["models"]["llama"] == {
        "targets": ["pool:llama"], "compare_with": ["openai/gpt-4o"],
        "then": [{"after": EVERY, "targets": ["openai/gpt-4o"]}],
    }  # fmt: skip
    assert [note.place for note in found.notes] == ["router_settings.fallbacks"]


def test_aliases_patterns_deadline_and_budget() -> None:
    found = carried(
        CLOUD,
        entry("openai/*", "openai/*", api_key="os.environ/KEY"),
        entry("*", "openai/*", api_key="os.environ/KEY"),
        router_settings={"model_group_alias": {"gpt": "cloud", "x": "nobody"}},
        litellm_settings={"request_timeout": 60, "max_budget": 5.5, "budget_duration": "30d"},
    )
    models = found.document["models"]
    assert (models["gpt"], models["openai/*"]) == ({"same_as": "cloud"}, "passthrough")
    assert found.document["server"] == {"timeouts": {"head_s": 60.0, "whole_s": 60.0}}
    assert found.document["budgets"] == [
        {"scope": "global", "usd": "5.5", "period": "month", "hard": True}
    ]
    assert sorted(note.place for note in found.notes)[::-1] == [
        "router_settings.model_group_alias.x", "model_list[2].model_name",
    ]  # fmt: skip


def test_what_names_no_key_has_its_vendors_own_and_is_the_same_provider() -> None:
    found = carried(
        entry("a", "openai/gpt-4o"),
        entry("openai/*", "openai/*", api_key="os.environ/OPENAI_API_KEY"),
        entry("b", "openai/x", api_base="https://elsewhere.example.com/v1"),
    )
    providers = found.document["providers"]
    assert providers["openai"] == {"api_key_env": "OPENAI_API_KEY"}
    assert "api_key_env" not in providers["elsewhere.example.com"]  # no key goes where none was
    assert found.document["models"]["openai/*"] == "passthrough"
    assert found.notes == []


def test_a_pattern_without_a_counterpart_leaves_no_provider_behind() -> None:
    other = entry("openai/*", "openai/*", api_key="os.environ/OTHER")
    found = carried(CLOUD, other, entry("any", "hosted_vllm/*", api_base="http://10.0.0.5/v1"))
    assert found.document["providers"].keys() == {"openai"}
    assert "pools" not in found.document
    assert [note.place for note in found.notes] == [
        "model_list[1].model_name", "model_list[2].model_name",
    ]  # fmt: skip


def test_fallbacks_with_more_than_a_name_and_nonsense_in_their_place() -> None:
    routing = {
        "fallbacks": [{"llama": [{"model": "cloud", "temperature": 0}, ["x"], {"api_key": "s3"}]}],
        "context_window_fallbacks": [{"llama": "cloud"}],
        "model_group_alias": {"x": ["cloud"], "y": {"model": "cloud", "hidden": True}},
    }
    found = carried(LOCAL, CLOUD, router_settings=routing)
    models = found.document["models"]
    assert models["llama"]["targets"] == ["pool:llama"]
    assert models["llama"]["then"] == [{"after": EVERY, "targets": ["openai/gpt-4o"]}]
    assert (models["y"], "x" in models) == ({"same_as": "cloud"}, False)
    assert len(found.notes) == 4
    assert "s3" not in repr(found.notes)


def test_an_address_in_a_variable_is_read_and_never_guessed() -> None:
    """Without it the vendor's own would be taken: prompts meant for a proxy would leave."""
    there = entry("a", "openai/gpt-4o", api_base="os.environ/WHERE")
    given = {"model_list": [there]}
    found = carry_over(given, gpu=GPU, provider_of=str, environ={"WHERE": "http://10.0.0.9/v1"})
    assert found.document["pools"]["gpt-4o"]["engine"]["endpoints"] == ["http://10.0.0.9/v1"]
    missing = carried(CLOUD, there)
    assert missing.document["models"].keys() == {"cloud"}
    assert [note.place for note in missing.notes] == ["model_list[1].litellm_params.api_base"]


def test_a_credential_is_what_it_stands_for_and_never_guessed() -> None:
    """Its address above all: without it prompts meant for an own server went to the vendor."""
    inside = {"api_base": "http://10.0.0.9:8000/v1", "api_key": "os.environ/INSIDE"}
    listed = [
        {"credential_name": "inside", "credential_values": inside, "credential_info": {}},
        {"credential_name": "azure", "credential_values": {"api_key": "s3cret"}},
        "text",
    ]
    by_name = entry("mine", "openai/llama", litellm_credential_name="inside")
    there = entry("there", "azure/gpt", litellm_credential_name="azure", api_key="os.environ/A")
    lost = entry("lost", "openai/gpt-4o", litellm_credential_name="of the database")
    found = carried(by_name, there, lost, credential_list=listed)
    engine = found.document["pools"]["llama"]["engine"]
    assert engine["endpoints"] == ["http://10.0.0.9:8000/v1"]
    assert engine["api_key_env"] == "INSIDE"
    assert found.document["providers"]["azure"]["api_key_env"] == "A"  # its own word counts
    assert found.document["models"].keys() == {"mine", "there"}
    places = [note.place for note in found.notes]
    assert "model_list[2].litellm_params.litellm_credential_name" in places
    assert "s3cret" not in repr(found)


def test_an_address_in_a_variable_of_the_file_is_read_there() -> None:
    there = entry("a", "openai/llama", api_base="os.environ/WHERE")
    for said, known in (("http://10.0.0.9/v1", True), ("os.environ/OTHER", False)):
        found = carried(CLOUD, there, environment_variables={"WHERE": said})
        assert ("a" in found.document["models"]) is known


def test_who_falls_back_to_an_alias_moves_to_its_targets() -> None:
    routing = {"fallbacks": [{"llama": ["big"]}], "model_group_alias": {"big": "cloud"}}
    found = carried(LOCAL, CLOUD, router_settings=routing)
    (stage,) = found.document["models"]["llama"]["then"]
    assert stage == {"after": EVERY, "targets": ["openai/gpt-4o"]}
    assert found.notes == []


def test_what_is_not_asked_here_is_told() -> None:
    found = carried(CLOUD, entry("film", "openai/sora-2", "video_generation"))
    assert found.document["models"].keys() == {"cloud"}
    assert [note.place for note in found.notes] == ["model_list[1]"]


def test_engines_are_compared_by_the_names_that_prices_have() -> None:
    azure = entry("llama", "azure/mine", api_base="https://eu.example.com")
    azure["model_info"] = {"base_model": "azure/gpt-4o"}
    assert carried(LOCAL, azure).document["models"]["llama"]["compare_with"] == ["azure/gpt-4o"]
    sold = carry_over(
        {"model_list": [LOCAL]}, gpu=GPU, provider_of=str, sold_as=lambda name: f"api/{name}"
    )
    assert sold.document["models"]["llama"]["compare_with"] == ["api/meta/llama"]
    assert [note.place for note in sold.notes] == ["models.llama.compare_with"]


def test_a_budget_of_no_calendar_window_is_told() -> None:
    found = carried(CLOUD, litellm_settings={"max_budget": 5, "budget_duration": "7d"})
    assert "budgets" not in found.document
    assert [note.place for note in found.notes] == ["litellm_settings.max_budget"]


@pytest.mark.parametrize("price", [2e-8, "2e-8", "0.00000002"])
def test_prices_are_exact(price) -> None:
    found = carried(entry("a", "openai/gpt-4o", input_cost_per_token=price))
    assert found.prices == [ImportedPrice("openai/gpt-4o", (("input", Decimal("0.00000002")),))]


def test_what_a_cache_costs_is_a_price_as_well() -> None:
    """Left out, cached tokens were charged as others are."""
    priced = entry("a", "anthropic/claude", input_cost_per_token=3e-6)
    priced["model_info"] = {"cache_read_input_token_cost": "3e-7", "supports_vision": True}
    found = carried(priced)
    kinds = ("input", Decimal("0.000003")), ("cached", Decimal("0.0000003"))
    assert found.prices == [ImportedPrice("anthropic/claude", kinds)]
    assert [note.place for note in found.notes] == ["model_list[0].model_info.supports_vision"]


def test_every_setting_is_carried_or_told() -> None:
    """A word that nobody knows, at every level."""
    known = {"model_name": "a", "litellm_params": {"model": "openai/gpt-4o"}, "model_info": {}}
    strange = {
        **known, "odd": 1, "litellm_params": {"model": "openai/gpt-4o", "odd": 1},
        "model_info": {"odd": 1},
    }  # fmt: skip
    sections = ("router_settings", "litellm_settings", "general_settings")
    found = carried(strange, **{name: {"odd": 1} for name in sections}, odd=1)
    assert sorted(note.place for note in found.notes) == sorted(
        ["model_list[0].odd", "model_list[0].litellm_params.odd", "model_list[0].model_info.odd",
         *(f"{name}.odd" for name in sections), "odd"]
    )  # fmt: skip


@pytest.mark.parametrize("entries", [None, {}, ["text"], [{"litellm_params": "text"}], [{}]])
def test_nonsense_is_no_model(entries) -> None:
    found = carry_over({"model_list": entries}, gpu=GPU, provider_of=lambda _: None)
    assert "models" not in found.document


def test_names_of_litellms_are_written_so_that_check_takes_them() -> None:
    """Who speaks chat needs no kind; elsewhere it keeps its name; kinds are said."""
    proxied = {"api_base": "https://proxy.example.com", "api_key": "os.environ/ONE"}
    found = carried(
        entry("a", "perplexity/sonar"), entry("b", "voyage/voyage-3"),
        entry("c", "minimax/M2", **proxied), entry("d", "perplexity/sonar", api_key="os.environ/P"),
    )  # fmt: skip
    providers = found.document["providers"]
    assert providers["perplexity"] == {"api_key_env": "PERPLEXITYAI_API_KEY"}
    assert providers["perplexity-2"]["base_url"] == "https://api.perplexity.ai"
    assert providers["voyage"] == {"kind": "litellm", "kinds": ["embedding"]}
    assert providers["minimax-proxy.example.com"] == {
        "kind": "litellm", "base_url": "https://proxy.example.com", "api_key_env": "ONE",
        "prices_as": "minimax/M2", "litellm_prefix": "minimax",
    }  # fmt: skip
    settings = draft_settings(read_document(yaml.safe_dump(found.document))).settings
    assert settings is not None
    assert [
        fault for check in CHECKS for fault in check(settings) if fault.severity == "error"
    ] == []


def test_a_name_that_cannot_be_called_says_what_to_do_instead() -> None:
    (note,) = carried(entry("a", "github_copilot/gpt-5")).notes
    assert note.place == "model_list[0].litellm_params.model"
    assert "use `github`" in note.text
