"""The configuration file is strict: every fault at once, by line."""

from pathlib import Path

import pytest

from gateway.config.settings import load, parse, version
from gateway.errors import ConfigError

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


def test_what_follows_from_a_fault_is_not_told() -> None:
    """`models.chat` names a pool that is there, only unreadable; the policy names that model."""
    text = GOOD.replace("engine: {model: /models/a, replicas: 1}", "engine: 7")
    assert len(faults(text)) == 1
    assert len(faults(GOOD.replace("pools:", "pool:"))) == 1


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
