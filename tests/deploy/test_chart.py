"""The Helm chart, as Helm renders it: valid objects, a configuration that the gateway takes."""

import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gateway.cli.commands import COMMANDS
from gateway.config import settings
from gateway.config.crosschecks_peers import port_of
from gateway.host.serve import QUICK_GRACE_S, WRITER_GRACE_S
from ledger.identity.tokens import PEPPER_FILE
from ledger.identity.vouchers import KEY_FILE

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "breakeven"
# The oldest and the newest that the chart is for, and one between them.
KUBERNETES = ("1.29", "1.33", "1.37")
NOT_KUBERNETES = {"ScaledObject", "ServiceMonitor", "PrometheusRule", "HTTPRoute"}


def config_of(chart: Any) -> settings.Settings:
    text = chart.one("ConfigMap", "breakeven-config")["data"]["breakeven.yaml"]
    return settings.parse(text, name="rendered")


def container(template: dict[str, Any]) -> dict[str, Any]:
    (found,) = template["spec"]["containers"]
    return found


@pytest.mark.parametrize("version", KUBERNETES)
def test_every_object_is_valid(example, version: str) -> None:
    native = [object_ for object_ in example.objects if object_["kind"] not in NOT_KUBERNETES]
    assert len(native) >= 14
    for item in native:
        assert kubernetes_validate.validate(item, version, strict=True)


@pytest.mark.parametrize("version", KUBERNETES)
def test_control_a_misspelt_member_is_not_valid(several, version: str) -> None:
    stateful = several.one("StatefulSet", "breakeven-gateway")
    (spelt,) = stateful["spec"]["template"]["spec"]["containers"]
    wrong = {**stateful, "spec": {**stateful["spec"], "template": {
        "metadata": stateful["spec"]["template"]["metadata"],
        "spec": {"containers": [{**spelt, "readinesProbe": spelt["readinessProbe"]}]},
    }}}  # fmt: skip
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_helm_finds_nothing_to_say_of_it(example) -> None:
    assert [message for message in example.lint["messages"] if message["severity"] > 1] == []
    assert example.lint["errors"] == []


def test_names_are_unique_and_selectors_find_their_own_pods(example) -> None:
    names = [(object_["kind"], object_["metadata"]["name"]) for object_ in example.objects]
    assert len(set(names)) == len(names)
    pods = [template["metadata"]["labels"] for _, template in example.pods]
    for kind in ("StatefulSet", "Deployment", "Service", "PodDisruptionBudget"):
        for item in example.of(kind):
            selector = item["spec"]["selector"]
            wanted = selector.get("matchLabels", selector)
            found = [labels for labels in pods if wanted.items() <= labels.items()]
            assert len(found) == 1, item["metadata"]["name"]


def test_its_version_is_the_products() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_the_gateway_takes_its_configuration(example) -> None:
    config = config_of(example)
    assert config.server.host == "0.0.0.0"
    (gateway,) = example.of("StatefulSet", "breakeven-gateway")
    this_container = container(gateway["spec"]["template"])
    assert config.server.port == this_container["ports"][0]["containerPort"]
    assert config.state_dir in {mount["mountPath"] for mount in this_container["volumeMounts"]}


def test_control_a_configuration_that_it_does_not_take_is_noticed(several) -> None:
    text = several.one("ConfigMap", "breakeven-config")["data"]["breakeven.yaml"]
    with pytest.raises(settings.ConfigError, match="unknown key"):
        settings.parse(text.replace('"workers"', '"wokers"'), name="rendered")


def test_whole_numbers_stay_whole(several) -> None:
    assert config_of(several).server.body_limit_bytes == 20_971_520
    text = several.one("ConfigMap", "breakeven-config")["data"]["breakeven.yaml"]
    assert "20971520" in text
    assert "e+" not in text


def test_every_variable_that_the_configuration_names_is_given(example) -> None:
    config = config_of(example)
    gateway = example.one("StatefulSet", "breakeven-gateway")
    given = {item["name"] for item in container(gateway["spec"]["template"])["env"]}
    named = {config.ledger.url_env, config.alerts.webhook_env, config.peers.secret_env}
    named |= {provider.api_key_env for provider in config.providers.values()}
    named |= {pool.engine.api_key_env for pool in config.pools.values()}
    assert named - {None} <= given


def test_files_that_the_configuration_names_are_mounted(everything) -> None:
    config = config_of(everything)
    gateway = everything.one("StatefulSet", "breakeven-gateway")
    places = [
        mount["mountPath"] for mount in container(gateway["spec"]["template"])["volumeMounts"]
    ]
    for path in (config.providers["openai"].api_key_file, config.dashboard.access_file):
        assert str(Path(path).parent) in places


def test_each_engine_of_a_pool_has_its_address(several) -> None:
    engines = several.one("StatefulSet", "breakeven-engine-llama-70b")
    service = several.one("Service", engines["spec"]["serviceName"])
    assert service["spec"]["clusterIP"] == "None"
    port = service["spec"]["ports"][0]["port"]
    name = engines["metadata"]["name"]
    pool = config_of(several).pools["llama-70b"].engine
    assert pool.endpoints == tuple(
        f"http://{name}-{index}.{name}.llm.svc:{port}/v1"
        for index in range(engines["spec"]["replicas"])
    )
    assert (
        f"--served-model-name={pool.served_name}" in container(engines["spec"]["template"])["args"]
    )


def test_what_may_be_scaled_up_has_its_addresses_from_the_start(everything) -> None:
    scaled = everything.one("ScaledObject", "breakeven-engine-llama-8b")["spec"]
    assert (
        len(config_of(everything).pools["llama-8b"].engine.endpoints) == scaled["maxReplicaCount"]
    )
    assert "replicas" not in everything.one("StatefulSet", "breakeven-engine-llama-8b")["spec"]


def test_every_host_has_the_same_secrets_and_a_disk_of_its_own(several) -> None:
    spec = several.one("StatefulSet", "breakeven-gateway")["spec"]
    assert spec["replicas"] == 3
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    state = config_of(several).state_dir
    mounts = {
        volumeMount["mountPath"]: volumeMount
        for volumeMount in container(spec["template"])["volumeMounts"]
    }
    assert mounts[state]["name"] == claim["metadata"]["name"]
    for file in (PEPPER_FILE, KEY_FILE):
        assert mounts[f"{state}/{file}"]["subPath"] == file
    assert spec["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain", "whenScaled": "Retain",
    }  # fmt: skip


def test_hosts_find_their_peers_behind_the_headless_service(several, render) -> None:
    """Also those that are not ready yet: an engine is busy with what they had begun before."""
    gateway = several.one("StatefulSet", "breakeven-gateway")["spec"]
    service = several.one("Service", gateway["serviceName"])
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    (port,) = [each_port for each_port in service["spec"]["ports"] if each_port["name"] == "peers"]
    peers, spec = config_of(several).peers, container(gateway["template"])
    assert peers.hosts == (f"breakeven-gateway-hosts.llm.svc:{port['port']}",)
    assert {"name": port["targetPort"], "containerPort": port_of(peers.listen)} in spec["ports"]
    (secret,) = [item for item in spec["env"] if item["name"] == peers.secret_env]
    assert secret["valueFrom"] == {"secretKeyRef": {"name": "breakeven", "key": "peers"}}
    alone = render("gateway: {replicas: 2}")
    assert config_of(alone).peers.hosts == ()
    assert "9444" not in str(alone.objects)


def test_pods_have_longer_than_the_drain_takes(example) -> None:
    """As `Serving.stop` counts: workers first, then up to four behind them, one by one."""
    limits = config_of(example).server.timeouts
    needed = limits.unready_s + limits.drain_s + QUICK_GRACE_S + 4 * WRITER_GRACE_S
    spec = example.one("StatefulSet", "breakeven-gateway")["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] >= needed


def test_engines_get_gpus_shared_memory_and_time_to_load(everything) -> None:
    spec = everything.one("StatefulSet", "breakeven-engine-llama-8b")["spec"]["template"]["spec"]
    (vllm,) = spec["containers"]
    assert vllm["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert "--tensor-parallel-size=2" in vllm["args"]
    shm = next(volume for volume in spec["volumes"] if volume["name"] == "shm")
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    probe = vllm["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 900


def test_an_engine_ends_its_answers_and_tells_cached_tokens(everything, several) -> None:
    """As those that `serve` starts: by itself vLLM cuts all answers off at SIGTERM."""
    for chart, name in ((everything, "llama-8b"), (several, "llama-70b")):
        spec = chart.one("StatefulSet", f"breakeven-engine-{name}")["spec"]["template"]["spec"]
        words = [word.partition("=") for word in spec["containers"][0]["args"]]
        said = {flag: value for flag, _, value in words}
        assert 100 <= int(said["--shutdown-timeout"]) < spec["terminationGracePeriodSeconds"]
        assert "--enable-prompt-tokens-details" in said


def test_migrations_come_before_the_pods_with_their_own_role(several) -> None:
    job = several.one("Job", "breakeven-migrations")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    this_container = container(job["spec"]["template"])
    (url,) = this_container["env"]
    assert url["valueFrom"]["secretKeyRef"]["key"] == "migrations-url"
    group, command = this_container["args"]
    assert command in COMMANDS[group].commands
    # What it stands on is there before it.
    for kind in ("ServiceAccount", "NetworkPolicy"):
        hook = several.one(kind, "breakeven-migrations")["metadata"]["annotations"]
        assert int(hook["helm.sh/hook-weight"]) < int(
            job["metadata"]["annotations"]["helm.sh/hook-weight"]
        )


def test_a_changed_configuration_replaces_the_pods(render) -> None:
    def digest(values: str) -> str:
        stateful = render(values).one("StatefulSet", "breakeven-gateway")
        return stateful["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    more = digest("config: {server: {workers: 3}}")
    assert digest("") == digest("gateway: {replicas: 2}")
    assert more != digest("")


def test_without_dashboard_and_policies_it_is_valid_too(render) -> None:
    values = "dashboard: {enabled: false}\nnetworkPolicy: {enabled: false}\n"
    chart = render(values + "ingress: {enabled: true, host: llm.example.com, tlsSecret: tls}")
    assert chart.of("Deployment") == chart.of("NetworkPolicy") == []
    assert chart.one("Ingress", "breakeven")["spec"]["tls"][0]["hosts"] == ["llm.example.com"]
    for object_ in chart.objects:
        assert kubernetes_validate.validate(object_, KUBERNETES[-1], strict=True)
    assert config_of(chart).dashboard.access_file is None
    assert "WARNING: networkPolicy.enabled is false" in chart.notes


def test_people_at_the_admin_api_have_their_access_file_without_a_dashboard(render) -> None:
    """A gateway that hears an issuer's tokens does not start without it."""
    oidc = "config: {oidc: {issuer: 'https://id.example.com', audiences: [breakeven]}}"
    chart = render(f"dashboard: {{enabled: false}}\n{oidc}")
    path = Path(config_of(chart).dashboard.access_file or "")
    gateway = chart.one("StatefulSet", "breakeven-gateway")["spec"]["template"]
    (mount,) = [
        volumeMount
        for volumeMount in container(gateway)["volumeMounts"]
        if volumeMount["mountPath"] == str(path.parent)
    ]
    (volume,) = [
        each_volume
        for each_volume in gateway["spec"]["volumes"]
        if each_volume["name"] == mount["name"]
    ]
    assert volume["secret"]["secretName"] == "breakeven-access"
    assert chart.of("Deployment") == []


def test_two_releases_stand_beside_each_other(render) -> None:
    names = [
        {
            (object_["kind"], object_["metadata"]["name"])
            for object_ in render("", name=release).objects
        }
        for release in ("breakeven", "second")
    ]
    assert names[0] & names[1] == set()


def test_the_notes_name_what_is_there(several) -> None:
    for kind, name in re.findall(r"(svc|statefulset)/([\w-]+)", several.notes):
        assert several.of({"svc": "Service", "statefulset": "StatefulSet"}[kind], name), name
    assert re.search(r"exec breakeven-gateway-0 -- breakeven keys create", several.notes)
