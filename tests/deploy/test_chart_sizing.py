"""Engines that the gateway sizes by dollars: its rights, and the ways that are open for it."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from gateway.config.crosschecks_scale import check_scale
from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.scaling.kubernetes_actuator import RESOURCES

VALUES = """
config:
  models: {{chat: {{targets: ["pool:llama"]}}}}
  pools:
    llama:
      gpu: {{type: H100, usd_per_hour: "2.50", billing: on_demand}}
      scale: {{max: 3, mode: advise}}
engines:
  llama: {{model: {{claim: models, path: llama}}, scale: {{through: {through}}}}}
  other: {{model: {{claim: models, path: other}}}}
"""
ENGINE, GATEWAY = "breakeven-engine-llama", "breakeven-gateway"


def values(through: str) -> str:
    found = yaml.safe_load(VALUES.format(through=through))
    found["config"]["pools"]["other"] = {"gpu": {"type": "H100", "usd_per_hour": "2.50"}}
    return yaml.safe_dump(found)


@pytest.fixture(params=["kubernetes", "keda"])
def through(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def chart(render, through: str) -> Any:
    return render(values(through))


def config_of(chart: Any) -> dict[str, Any]:
    (found,) = chart.of("ConfigMap", "breakeven-config")
    return json.loads(found["data"]["breakeven.yaml"])


def pod(chart: Any, name: str) -> dict[str, Any]:
    return dict(chart.pods)[name]["spec"]


def test_the_gateway_may_do_what_it_asks_for_and_nothing_else(chart, through) -> None:
    (role,), (binding,) = chart.of("Role"), chart.of("RoleBinding")
    (rule,) = role["rules"]
    path = RESOURCES["StatefulSet"].format("llm", ENGINE)
    group, resource = rule["apiGroups"][0], rule["resources"][0].partition("/")
    assert path == f"apis/{group}/v1/namespaces/llm/{resource[0]}/{ENGINE}/{resource[2]}"
    assert rule["resourceNames"] == [ENGINE]
    assert rule["verbs"] == (["get"] if through == "keda" else ["get", "update"])
    (subject,) = binding["subjects"]
    assert subject["name"] == pod(chart, GATEWAY)["serviceAccountName"]
    tokens = {
        name: template["spec"]["automountServiceAccountToken"] for name, template in chart.pods
    }
    assert {name for name, has_token in tokens.items() if has_token} == {GATEWAY}


def test_each_engine_that_may_come_has_its_place_and_nobody_else_sets_replicas(chart) -> None:
    pool = config_of(chart)["pools"]["llama"]
    hosts = [urlsplit(address).hostname or "" for address in pool["engine"]["endpoints"]]
    assert [host.partition(".")[0] for host in hosts] == [f"{ENGINE}-{place}" for place in range(3)]
    assert "replicas" not in chart.one("StatefulSet", ENGINE)["spec"]
    assert chart.one("StatefulSet", "breakeven-engine-other")["spec"]["replicas"] == 1


def test_the_configuration_is_one_that_the_gateway_takes(chart, through) -> None:
    text = yaml.safe_dump(config_of(chart))
    drafted = draft_settings(read_document(text))
    assert drafted.settings is not None
    assert drafted.settings.pools["llama"].scale.actuator.kind == through
    assert [fault for fault in check_scale(drafted.settings) if fault.severity == "error"] == []


def test_the_way_to_the_api_server_is_open_for_the_gateway_alone(chart) -> None:
    ways = {
        policy["metadata"]["name"]
        for policy in chart.of("NetworkPolicy")
        for rule in policy["spec"].get("egress") or []
        if {port["port"] for port in rule.get("ports", [])} == {443, 6443}
    }
    assert ways == {GATEWAY}


def test_keda_finds_the_gateway_where_it_listens(render) -> None:
    chart = render(values("keda"))
    (scaled,) = chart.of("ScaledObject", ENGINE)
    (trigger,) = scaled["spec"]["triggers"]
    host, _, port = trigger["metadata"]["scalerAddress"].partition(":")
    (service,) = chart.of("Service", host.partition(".")[0])
    (named,) = [item for item in service["spec"]["ports"] if item["port"] == int(port)]
    (container,) = pod(chart, GATEWAY)["containers"]
    assert {"name": named["targetPort"], "containerPort": int(port)} in container["ports"]
    assert config_of(chart)["server"]["keda_port"] == int(port)
    assert trigger["metadata"]["pool"] == "llama"
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (0, 3)
    (policy,) = chart.of("NetworkPolicy", GATEWAY)
    (way,) = [
        rule
        for rule in policy["spec"]["ingress"]
        if {item["port"] for item in rule["ports"]} == {int(port)}
    ]
    assert way["from"][0]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "keda"
    }


@pytest.mark.part("crds")
def test_the_object_for_keda_is_valid(render, crd_faults) -> None:
    chart = render(values("keda"))
    assert crd_faults(chart.of("ScaledObject")) == [None]


def test_without_such_an_engine_there_is_no_right_and_no_token(render) -> None:
    found = yaml.safe_load(values("kubernetes"))
    del found["engines"]["llama"]["scale"], found["config"]["pools"]["llama"]["scale"]
    chart = render(yaml.safe_dump(found))
    assert not [item for item in chart.objects if "Role" in item["kind"]]
    assert all(
        template["spec"]["automountServiceAccountToken"] is False for _, template in chart.pods
    )


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("engines", "llama", "autoscaling"), {"minReplicas": 1, "maxReplicas": 2}, "both set"),
        (("config", "pools", "llama", "scale"), None, r"scale\.max is missing"),
        (("engines", "llama", "scale"), {"through": "hpa"}, "through"),
    ],
)
def test_what_cannot_be_meant_is_refused(render, refused, path, value, words) -> None:
    found = yaml.safe_load(values("kubernetes"))
    *way, last = path
    place = found
    for name in way:
        place = place[name]
    if value is None:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(refused, match=words):
        render(yaml.safe_dump(found))
