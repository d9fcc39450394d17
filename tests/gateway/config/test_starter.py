"""The configuration of a first start: valid, honest, no real API without being asked."""

from decimal import Decimal
from pathlib import Path

import pytest

from backends.engine import shipped
from backends.simulator.profiles import PROFILES
from gateway.config.declarations import contracts
from gateway.config.examination import examine
from gateway.config.settings import parse, resolve_model
from gateway.config.starter import (
    CPU_RATE_USD,
    DAILY_BUDGET_USD,
    MACHINE,
    PROVIDERS,
    SIMULATED_PROFILE,
    USUAL_PORTS,
    StarterPorts,
    configuration,
    find_providers,
    wanted_ports,
)
from ledger.money import usd_to_pusd

ALL_KEYS = {provider.variable: "secret-value" for provider in PROVIDERS}


def first(tmp_path: Path, **changes: object):
    given = {"engine": "vllm", "gpu": None, "keys": ()}
    return parse(configuration(tmp_path, **{**given, **changes}), name="first")


def test_only_keys_with_a_value_are_found():
    assert find_providers({}) == ()
    assert find_providers({"OPENAI_API_KEY": "", "PATH": "/bin"}) == ()
    assert [
        finding.name for finding in find_providers({"XAI_API_KEY": "x", "OPENAI_API_KEY": "y"})
    ] == [
        "openai",
        "xai",
    ]
    assert find_providers(ALL_KEYS) == PROVIDERS


@pytest.mark.parametrize("engine", ["vllm", "simulated"])
@pytest.mark.parametrize("gpu", [None, "NVIDIA H200"])
@pytest.mark.parametrize("keys", [(), PROVIDERS])
def test_every_first_configuration_is_valid(tmp_path, engine, gpu, keys):
    settings = first(tmp_path, engine=engine, gpu=gpu, keys=keys)
    assert {pool.engine.kind for pool in settings.pools.values()} == {engine}
    assert settings.state == tmp_path
    assert settings.dashboard.enabled
    assert (settings.server.port, settings.dashboard.port) == (8080, 8501)


@pytest.mark.parametrize("engine", ["vllm", "simulated"])
@pytest.mark.parametrize("gpu", [None, "NVIDIA H200", "NVIDIA H100 80GB HBM3 + NVIDIA L4"])
def test_it_passes_its_check_without_a_warning_once_the_models_are_made(tmp_path, engine, gpu):
    (tmp_path / "models" / "tiny-embed").mkdir(parents=True)
    (tmp_path / "models" / "tiny-embed" / "config.json").write_text("{}")
    path = tmp_path / "up.yaml"
    path.write_text(configuration(tmp_path, engine=engine, gpu=gpu, keys=PROVIDERS))
    assert examine(path, at_us=1_795_000_000_000_000).lines == []


def test_the_ports_are_the_askers(tmp_path):
    settings = first(tmp_path, ports=StarterPorts(1234, 5678))
    assert (settings.server.port, settings.dashboard.port) == (1234, 5678)
    assert StarterPorts(8080, 8501) == USUAL_PORTS


@pytest.mark.parametrize("keys", [(), PROVIDERS])
def test_the_tiny_models_never_spill_to_a_real_provider(tmp_path, keys):
    settings = first(tmp_path, keys=keys)
    for name in ("tiny", "tiny-embed"):
        for target in settings.models[name].targets:
            kind, _, provider = target.partition(":")
            if kind != "pool":
                assert settings.providers[provider or target.partition("/")[0]].simulated


def test_without_being_asked_no_provider_is_real(tmp_path):
    assert all(provider.simulated for provider in first(tmp_path).providers.values())


def test_keys_become_pass_through_models_under_one_hard_budget(tmp_path):
    settings = first(tmp_path, keys=PROVIDERS)
    for provider in PROVIDERS:
        assert resolve_model(settings, f"{provider.name}/some-model") is not None
        assert settings.providers[provider.name].api_key_env == provider.variable
    (budget,) = settings.budgets
    assert (budget.scope, budget.usd, budget.period, budget.hard) == (
        "external", Decimal(DAILY_BUDGET_USD), "day", True,
    )  # fmt: skip
    assert DAILY_BUDGET_USD == 1


def test_secrets_are_never_written_down(tmp_path):
    text = configuration(tmp_path, engine="vllm", gpu=None, keys=find_providers(ALL_KEYS))
    assert "secret-value" not in text


def test_a_gpu_has_no_invented_rate_and_a_cpu_a_labelled_one(tmp_path):
    bare = first(tmp_path, gpu="NVIDIA H200").pools["tiny"].gpu
    assert (bare.type, bare.usd_per_hour) == ("NVIDIA H200", None)
    cpu = first(tmp_path).pools["tiny"].gpu
    assert float(cpu.usd_per_hour) == CPU_RATE_USD
    assert cpu.source.startswith("assumed")


@pytest.mark.parametrize("gpu", [None, "NVIDIA H200"])
def test_the_one_machine_is_paid_for_once(tmp_path, gpu):
    """Two engines run on it: the bills of their pools are together the machine's."""
    found = contracts(first(tmp_path, gpu=gpu))
    assert {finding.machine for finding in found} == {MACHINE}
    assert [finding.share_ppm for finding in found] == [500_000, 500_000]
    if gpu is None:
        paid = sum(
            finding.pusd_per_hour * finding.gpus_per_replica * finding.replicas for finding in found
        )
        assert paid == usd_to_pusd(Decimal(str(CPU_RATE_USD)))


def test_the_simulated_engine_is_one_that_exists(tmp_path):
    settings = first(tmp_path, engine="simulated")
    assert {pool.engine.model for pool in settings.pools.values()} == {SIMULATED_PROFILE}
    assert SIMULATED_PROFILE in PROFILES


def test_real_engines_serve_the_model_that_is_shipped_and_the_one_that_is_made(tmp_path):
    pools = first(tmp_path).pools
    assert pools["tiny"].engine.model == str(shipped.DIRECTORY)
    assert pools["tiny-embed"].engine.model == str(tmp_path / "models" / "tiny-embed")
    assert [pool.engine.served_name for pool in pools.values()] == list(pools)


@pytest.mark.parametrize(
    ("gateway", "dashboard", "expected", "movable"),
    [
        (None, None, (8080, 8501, 8100), {"gateway", "dashboard"}),
        (None, 9001, (8080, 9001, 8100), {"gateway"}),
        (9000, None, (9000, 9001, 9002), {"dashboard"}),
        (9000, 9500, (9000, 9500, 9002), set()),
        (65_535, None, (65_535, 65_471, 65_472), {"dashboard"}),
    ],
)
def test_a_chosen_gateway_port_moves_all_others(tmp_path, gateway, dashboard, expected, movable):
    ports = wanted_ports(gateway, dashboard)
    found_ports = (ports.gateway, ports.dashboard, ports.engines)
    assert (found_ports, ports.movable) == (expected, movable)
    settings = first(tmp_path, ports=ports)
    engines = [pool.engine.port for pool in settings.pools.values()]
    assert (settings.server.port, settings.dashboard.port) == expected[:2]
    assert engines == [ports.engines, ports.engines + 1]
