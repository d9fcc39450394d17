"""The configuration file: strict, every fault at once, aliases and pass-through resolved."""

from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.settings import load, parse, resolve_model, version

GOOD = """
models:
  chat: {targets: ["pool:a", "openai/gpt-4o-mini"], compare_with: ["openai/gpt-4o-mini"]}
  gpt-4o: {same_as: chat}
  alias-of-alias: {same_as: gpt-4o}
  "openai/*": passthrough
pools:
  a:
    engine: {model: /models/a, replicas: 1}
    gpu: {type: H200, usd_per_hour: 3.50, source: contract, since: 2026-11-01}
providers:
  openai: {api_key_env: OPENAI_API_KEY}
policies:
  - {name: fast, match: {models: [chat]}, slo: {ttft_ms: 500}}
budgets:
  - {scope: "team:search", usd: 500}
"""


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, name="file.yaml")
    return caught.value.faults


def test_a_good_file_is_read() -> None:
    settings = parse(GOOD, name="file.yaml")
    assert settings.pools["a"].gpu.usd_per_hour == pytest.approx(3.5)
    assert settings.budgets[0].hard


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("chat", "chat"),
        ("gpt-4o", "chat"),
        ("alias-of-alias", "chat"),
        ("openai/gpt-5", "openai/gpt-5"),
    ],
)
def test_names_are_resolved(asked: str, served: str) -> None:
    found = resolve_model(parse(GOOD, name="x"), asked)
    assert found is not None
    assert found[0] == served
    assert found[1].targets


@pytest.mark.parametrize("asked", ["nope", "openai/", "anthropic/x", "openai/*", ""])
def test_unknown_names_are_no_models(asked: str) -> None:
    assert resolve_model(parse(GOOD, name="x"), asked) is None


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("replicas: 1}", "replicas: 1, colour: red}", "pools.a.engine.colour: unknown key"),
        ("pool:a", "pool:b", "no pool named `b`"),
        ('"openai/gpt-4o-mini"], compare', '"acme/x"], compare', "no provider named `acme`"),
        (', compare_with: ["openai/gpt-4o-mini"]', "", "compare_with"),
        ("same_as: chat", "same_as: nothing", "leads to no model"),
        ('"openai/*"', '"acme/*"', "models.acme/*"),
        ("model: /models/a, replicas: 1", "model: /models/a", "set `replicas` or `endpoints`"),
        ("models: [chat]", "models: [chatt]", "no model named `chatt`"),
        ("usd: 500", "usd: -1", "budgets.0.usd"),
        ("team:search", "galaxy:x", "budgets.0.scope"),
        ("usd: 500", "timezone: Mars/Olympus, usd: 500", "budgets.team:search.timezone"),
        ("replicas: 1}", 'replicas: 1, endpoints: ["h:1"]}', "pools.a.engine: not an"),
        ("providers:", "providers:\n  q: {}", "providers.q.base_url: needed"),
        ("providers:", "providers:\n  q: {base_url: no url}", "providers.q.base_url: not an"),
        ("name: fast", "name: ''", "policies.0.name"),
    ],
)
def test_a_fault_names_its_key(before: str, after: str, words: str) -> None:
    assert before in GOOD
    assert any(words in fault for fault in faults(GOOD.replace(before, after)))


def test_all_faults_come_at_once() -> None:
    text = GOOD.replace("pool:a", "pool:b").replace("same_as: chat}", "same_as: nothing}")
    assert len(faults(text)) >= 2


def test_internal_models_have_no_external_targets() -> None:
    text = GOOD.replace("targets: [", "residency: internal_only, targets: [", 1)
    assert any("internal_only" in fault for fault in faults(text))


def test_a_circle_of_aliases_is_a_fault() -> None:
    text = "models: {a: {same_as: b}, b: {same_as: a}}"
    assert len(faults(text)) == 2


@pytest.mark.parametrize("text", ["[1]", "a: [", "models: 3"])
def test_what_is_no_configuration_is_told_so(text: str) -> None:
    assert faults(text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load(tmp_path / "nowhere.yaml")


def test_a_file_that_is_no_text_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\x90\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(path)


def test_the_version_follows_the_content() -> None:
    first, same = parse(GOOD, name="a"), parse(GOOD + "\n# a comment\n", name="b")
    changed = parse(GOOD.replace("500}", "501}"), name="c")
    assert version(first) == version(same) != version(changed)
