"""compose.yaml and its configuration agree with the code: settings, ports, paths, variables."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi import FastAPI
from sqlalchemy import make_url

from gateway.config import settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
FILE = DEPLOY / "compose.yaml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def config() -> settings.Settings:
    return settings.load(DEPLOY / "compose.breakeven.yaml")


def published(service: dict[str, Any]) -> list[tuple[str, int]]:
    """(host address, container port) of each published port."""
    parts = [str(port).split(":") for port in service.get("ports", [])]
    return [(part[0], int(part[-1])) for part in parts]


def app_paths() -> set[str]:
    """The paths that gateway/worker/app.py declares, read from its decorators."""
    tree = ast.parse((ROOT / "gateway" / "worker" / "app.py").read_text(encoding="utf-8"))
    return {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in dir(FastAPI)
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and str(node.args[0].value).startswith("/")
    }


def test_the_services_are_there(compose: dict[str, Any]) -> None:
    wanted = {"gateway", "dashboard", "postgres", "prometheus", "grafana", "vllm"}
    assert set(compose["services"]) == wanted
    profiled = {name for name, each in compose["services"].items() if "profiles" in each}
    assert profiled == {"vllm"}


def test_ports_are_the_settings_and_only_on_loopback(
    compose: dict[str, Any], config: settings.Settings
) -> None:
    services = compose["services"]
    assert published(services["gateway"]) == [("127.0.0.1", config.server.port)]
    assert config.server.host == "0.0.0.0"
    assert published(services["dashboard"]) == [("127.0.0.1", config.dashboard.port)]
    assert f"--server.port={config.dashboard.port}" in services["dashboard"]["command"]
    for service in services.values():
        assert all(host == "127.0.0.1" for host, _ in published(service))


def test_state_is_on_the_volume_that_the_image_declares(
    compose: dict[str, Any], config: settings.Settings
) -> None:
    mounts = {volume.split(":")[1] for volume in compose["services"]["gateway"]["volumes"]}
    assert config.state_dir in mounts
    assert f"VOLUME {config.state_dir}" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def test_the_mounted_configuration_is_the_one_that_every_command_reads(
    compose: dict[str, Any],
) -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    path = re.search(r"BREAKEVEN_CONFIG=(\S+)", dockerfile)
    assert path is not None
    mounts = [volume.split(":") for volume in compose["services"]["gateway"]["volumes"]]
    assert ["./compose.breakeven.yaml", path[1], "ro"] in mounts


def test_named_volumes_are_declared_and_mounted_files_exist(compose: dict[str, Any]) -> None:
    used = set()
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (DEPLOY / source).exists(), source
            elif not source.startswith("$"):
                used.add(source)
    assert used == set(compose["volumes"])


def test_the_ledger_url_reaches_gateway_and_dashboard(
    compose: dict[str, Any], config: settings.Settings
) -> None:
    postgres = compose["services"]["postgres"]["environment"]
    for name in ("gateway", "dashboard"):
        url = compose["services"][name]["environment"][config.ledger.url_env]
        assert url.startswith(f"postgresql+psycopg://{postgres['POSTGRES_USER']}@")
        assert url.endswith(f"@postgres:5432/{postgres['POSTGRES_DB']}")


@pytest.mark.parametrize("password", ["p@ss/word", "50%40", "a:b@c?d#e", "\"' \\"])
def test_any_password_reaches_the_database_as_it_is(
    compose: dict[str, Any], config: settings.Settings, password: str
) -> None:
    """Compose puts it in as text; libpq takes `PGPASSWORD` beside an address without one."""
    for name in ("gateway", "dashboard"):
        said = {
            variable: re.sub(r"\$\{POSTGRES_PASSWORD[^}]*\}", lambda _: password, str(value))
            for variable, value in compose["services"][name]["environment"].items()
        }
        url = make_url(said[config.ledger.url_env])
        assert url.host == "postgres"
        assert (url.password or said.get("PGPASSWORD")) == password


def test_the_database_is_healthy_when_it_can_be_reached(compose: dict[str, Any]) -> None:
    """The image first makes it behind a socket; who is let in then finds it gone a second later."""
    assert "--host" in compose["services"]["postgres"]["healthcheck"]["test"]


def test_every_secret_is_named_and_reaches_the_gateway(
    compose: dict[str, Any], config: settings.Settings
) -> None:
    environment = compose["services"]["gateway"]["environment"]
    for provider in config.providers.values():
        # Without it the gateway does not start; compose says so before anything does.
        assert environment[provider.api_key_env].startswith(f"${{{provider.api_key_env}:?")
    text = FILE.read_text(encoding="utf-8")
    secrets = re.findall(r"^\s*\w*(?:PASSWORD|API_KEY)\w*: (.*)$", text, re.MULTILINE)
    assert secrets
    assert all(value.startswith("${") for value in secrets)


def test_the_engine_is_where_the_pool_looks(
    compose: dict[str, Any], config: settings.Settings
) -> None:
    command = compose["services"]["vllm"]["command"]
    port = command[command.index("--port") + 1]
    engine = config.pools["own"].engine
    assert engine.endpoints == (f"http://vllm:{port}/v1",)
    assert engine.served_name == command[command.index("--served-model-name") + 1]
    tag = compose["services"]["vllm"]["image"].rpartition(":v")[2]
    assert f"vllm=={tag} " in (DEPLOY / "engine-cuda" / "requirements.lock").read_text()


def test_health_checks_ask_for_paths_that_exist(compose: dict[str, Any]) -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    paths = re.findall(r"http://127\.0\.0\.1:8080(/\w+)", dockerfile)
    assert paths == ["/healthz"]
    assert set(paths) <= app_paths()
    for name in ("dashboard", "postgres", "vllm"):
        assert compose["services"][name]["healthcheck"]["test"][0] == "CMD"


def test_waiting_for_a_healthy_service_needs_a_check_in_it(compose: dict[str, Any]) -> None:
    with_check = {name for name, each in compose["services"].items() if "healthcheck" in each}
    with_check.add("gateway")  # the image's own
    for service in compose["services"].values():
        waits = service.get("depends_on", {})
        if isinstance(waits, dict):
            assert set(waits) <= with_check


def test_containers_of_ours_are_confined(compose: dict[str, Any]) -> None:
    for name in ("gateway", "dashboard"):
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]


def test_the_engine_ends_its_answers_and_tells_cached_tokens(compose: dict[str, Any]) -> None:
    """As those that `serve` starts: by itself vLLM cuts all answers off at SIGTERM."""
    vllm = compose["services"]["vllm"]
    drain_s = int(vllm["command"][vllm["command"].index("--shutdown-timeout") + 1])
    assert 30 <= drain_s < int(vllm["stop_grace_period"].removesuffix("s"))
    assert "--enable-prompt-tokens-details" in vllm["command"]


def test_nobody_shares_the_machine_s_own_namespaces(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert "host" not in {service.get(kind) for kind in ("ipc", "pid", "network_mode", "uts")}
        assert not service.get("privileged", False)


def test_the_grace_period_is_longer_than_the_drain(
    compose: dict[str, Any], config: settings.Settings
) -> None:
    """By as much as the chart gives a pod: the ledger writer comes last."""
    grace_s = int(compose["services"]["gateway"]["stop_grace_period"].removesuffix("s"))
    limits = config.server.timeouts
    assert grace_s >= limits.unready_s + limits.drain_s + 90


def test_a_key_that_the_gateway_does_not_know_is_noticed() -> None:
    """Negative control: the configuration is really checked, not only parsed."""
    text = (DEPLOY / "compose.breakeven.yaml").read_text(encoding="utf-8")
    with pytest.raises(settings.ConfigError, match="unknown key"):
        settings.parse(text.replace("workers: 2", "wokers: 2"), name="compose")
