"""breakeven.example.yaml is valid, shows every section, and its parts fit together."""

from pathlib import Path

import pytest

from gateway import settings

FILE = Path(__file__).resolve().parents[2] / "breakeven.example.yaml"


@pytest.fixture(scope="module")
def example() -> settings.Settings:
    return settings.load(FILE)


def test_every_section_is_shown(example: settings.Settings) -> None:
    may_be_left_out = {"prices"}
    assert set(settings.Settings.model_fields) - example.model_fields_set == may_be_left_out


def test_an_alias_a_pass_through_and_a_confined_model_are_shown(
    example: settings.Settings,
) -> None:
    assert settings.resolve_model(example, "gpt-4o") == (
        "chat-large",
        example.models["chat-large"],
    )
    assert settings.resolve_model(example, "openai/o-anything") is not None
    assert example.models["code-internal"].residency == "internal_only"


def test_both_ways_to_have_an_engine_are_shown(example: settings.Settings) -> None:
    engines = [pool.engine for pool in example.pools.values()]
    assert any(engine.replicas for engine in engines)
    assert any(engine.endpoints for engine in engines)


def test_no_secret_is_written_down(example: settings.Settings) -> None:
    for provider in example.providers.values():
        assert provider.api_key_env
        assert provider.api_key_env.isupper()


def test_two_engines_of_one_host_do_not_share_ports(example: settings.Settings) -> None:
    ports: list[int] = [example.server.port, example.dashboard.port]
    for pool in example.pools.values():
        ports += range(pool.engine.port, pool.engine.port + pool.engine.replicas)
    assert len(set(ports)) == len(ports)
