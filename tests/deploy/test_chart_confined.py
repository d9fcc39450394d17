"""Pods of the chart: restricted as Pod Security has it, secrets by reference, probes that answer.

Each judgement is a function from rendered objects to faults, so that its control can break one.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import Clock
from gateway.config import settings

ROOT = Path(__file__).resolve().parents[2]
STREAMLIT = {"/_stcore/health"}
VLLM = {"/health"}
VOLUMES = {"configMap", "emptyDir", "secret", "persistentVolumeClaim"}
SECRET_WORDS = ("KEY", "SECRET", "PASSWORD", "TOKEN", "URL", "WEBHOOK")


def faults(pod: dict[str, Any]) -> Iterator[str]:
    """Against the profile `restricted`, and what this chart asks of its pods beyond it."""
    spec, whole = pod["spec"], pod["spec"].get("securityContext", {})
    if spec.get("automountServiceAccountToken") is not False:
        yield "has a token for the cluster"
    if whole.get("runAsNonRoot") is not True or not whole.get("runAsUser"):
        yield "may be root"
    if whole.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "has no seccomp profile"
    for shared in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(shared):
            yield f"shares {shared}"
    for volume in spec.get("volumes", []):
        if not set(volume) - {"name"} <= VOLUMES:
            yield f"mounts {volume}"
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        own = container.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
            yield "may gain privileges"
        if own.get("capabilities") != {"drop": ["ALL"]}:
            yield "keeps capabilities"
        if own.get("readOnlyRootFilesystem") is not True:
            yield "may write its image"
        if "memory" not in container.get("resources", {}).get("limits", {}):
            yield "has no limit of memory"


def open_secrets(pod: dict[str, Any]) -> Iterator[str]:
    for container in pod["spec"]["containers"]:
        for variable in container.get("env", []):
            name, value = variable["name"], str(variable.get("value", ""))
            sounds = any(word in name for word in SECRET_WORDS)
            if value and sounds and not name.endswith(("_FILE",)):
                yield f"{name} is a value"
            if "://" in value and "@" in value:
                yield f"{name} holds an address with a password"


def paths(pod: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for container in pod["spec"]["containers"]:
        ports = {port["name"] for port in container["ports"]} if "ports" in container else set()
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            if kind in container:
                assert container[kind]["httpGet"]["port"] in ports
                yield kind, container[kind]["httpGet"]["path"]


def test_every_pod_is_restricted(example) -> None:
    pods = dict(example.pods)
    assert {"breakeven-gateway", "breakeven-dashboard", "breakeven-migrations"} <= set(pods)
    assert {name: list(faults(pod)) for name, pod in pods.items()} == {name: [] for name in pods}


@pytest.mark.parametrize(
    ("where", "value", "fault"),
    [
        (("automountServiceAccountToken",), True, "has a token for the cluster"),
        (("securityContext", "runAsNonRoot"), False, "may be root"),
        (("securityContext", "seccompProfile"), None, "has no seccomp profile"),
        (("hostNetwork",), True, "shares hostNetwork"),
        (("containers", 0, "securityContext", "capabilities"), {}, "keeps capabilities"),
        (("containers", 0, "securityContext", "readOnlyRootFilesystem"), False,
         "may write its image"),
        (("containers", 0, "securityContext", "allowPrivilegeEscalation"), True,
         "may gain privileges"),
        (("containers", 0, "resources"), {}, "has no limit of memory"),
        (("volumes",), [{"name": "x", "hostPath": {"path": "/"}}],
         "mounts {'name': 'x', 'hostPath': {'path': '/'}}"),
    ],
)  # fmt: skip
def test_control_each_freedom_is_noticed(several, where, value: object, fault: str) -> None:
    pod = copy.deepcopy(dict(several.pods)["breakeven-gateway"])
    *way, last = where
    place: Any = pod["spec"]
    for step in way:
        place = place[step]
    place[last] = value
    assert list(faults(pod)) == [fault]


def test_service_accounts_have_no_token_and_no_rights(example) -> None:
    accounts = example.of("ServiceAccount")
    used = {pod["spec"]["serviceAccountName"] for _, pod in example.pods}
    assert {account["metadata"]["name"] for account in accounts} == used
    assert all(account["automountServiceAccountToken"] is False for account in accounts)
    assert not [object_ for object_ in example.objects if "Role" in object_["kind"]]


def test_every_secret_is_a_reference(example) -> None:
    assert example.of("Secret") == []
    for name, pod in example.pods:
        assert list(open_secrets(pod)) == [], name


def test_control_a_secret_as_a_value_is_noticed(several) -> None:
    pod = copy.deepcopy(dict(several.pods)["breakeven-gateway"])
    pod["spec"]["containers"][0]["env"] += [
        {"name": "OPENAI_API_KEY", "value": "sk-1"},
        {"name": "ELSEWHERE", "value": "postgresql://a:b@c/d"},
    ]
    assert list(open_secrets(pod)) == [
        "OPENAI_API_KEY is a value", "ELSEWHERE holds an address with a password",
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["--api-key=sk-1", "--api_key=sk-1", "--hf-token=hf_1", "--port"])
def test_an_engine_s_words_hold_no_secret(render, refused, word: str) -> None:
    """Whoever may look at a pod reads them, and so does everybody who reads the values."""
    values = f"""
config: {{pools: {{p: {{gpu: {{type: L40S, billing: owned, usd_per_hour: 1, source: x}}}}}}}}
engines: {{p: {{model: {{claim: m, path: x}}, gpus: 1, args: ["{word}"]}}}}
"""
    if word == "--port":  # the control
        assert word in json.dumps(render(values).objects)
        return
    with pytest.raises(refused, match="/engines/p/args/0"):
        render(values)


def test_secrets_are_read_by_the_group_alone(example) -> None:
    for _, pod in example.pods:
        for volume in pod["spec"].get("volumes", []):
            if "secret" in volume:
                assert volume["secret"]["defaultMode"] == 0o440


@pytest.fixture(scope="module")
def routes() -> set[str]:
    """Of the gateway's own application."""
    from gateway.worker.app import Operations, create_app  # noqa: PLC0415  (takes a second)

    engine: Any = None
    application = create_app(
        settings.Settings(), Operations(lambda: b"", list), Clock(), lambda _: None, engine
    )
    return {getattr(route, "path", "") for route in application.routes}


def test_probes_ask_for_paths_that_exist(example, routes: set[str]) -> None:
    for name, pod in example.pods:
        found = dict(paths(pod))
        if name == "breakeven-gateway":
            assert found.pop("readinessProbe") == "/readyz"
            assert found == {"startupProbe": "/healthz", "livenessProbe": "/healthz"}
            assert {"/readyz", "/healthz"} <= routes
        elif name == "breakeven-migrations":
            assert found == {}
        else:
            assert len(found) == 3
            assert set(found.values()) in (STREAMLIT, VLLM)


def test_the_route_outside_leads_to_what_asks_for_a_key(everything, routes: set[str]) -> None:
    route = everything.one("HTTPRoute", "breakeven-gateway")["spec"]["rules"][0]
    ingress = everything.one("Ingress", "breakeven")["spec"]["rules"][0]["http"]["paths"]
    outside = {match["path"]["value"] for match in route["matches"]}
    assert outside == {path["path"] for path in ingress} == {"/v1", "/v2/rerank"}
    inside = {"/metrics", "/healthz", "/readyz", "/docs"}
    assert inside <= routes
    assert not [path for path in inside if path.startswith(tuple(outside))]


def test_whoever_stands_before_it_waits_longer_than_it_does(everything) -> None:
    route = everything.one("HTTPRoute", "breakeven-gateway")["spec"]["rules"][0]
    text = everything.one("ConfigMap", "breakeven-config")["data"]["breakeven.yaml"]
    total_s = settings.parse(text, name="rendered").server.timeouts.total_s
    assert int(route["timeouts"]["request"].removesuffix("s")) > total_s


def test_the_example_s_ingress_lets_through_what_the_gateway_takes(everything) -> None:
    """nginx takes 1 MiB by itself, and a minute without a byte."""
    text = everything.one("ConfigMap", "breakeven-config")["data"]["breakeven.yaml"]
    config = settings.parse(text, name="rendered")
    (ingress,) = everything.of("Ingress")
    said = {
        name.rpartition("/")[2]: annotation
        for name, annotation in ingress["metadata"]["annotations"].items()
    }
    largest = max(config.server.body_limit_bytes, config.batches.file_limit_bytes)
    assert int(said["proxy-body-size"].removesuffix("m")) * 1024**2 > largest
    for way in ("read", "send"):
        assert int(said[f"proxy-{way}-timeout"]) > config.server.timeouts.total_s
    assert {said["proxy-buffering"], said["proxy-request-buffering"]} == {"off"}


def test_the_dashboard_is_started_as_serve_starts_it(example) -> None:
    """Its script is where the image has it, and who looks is asked."""
    (item,) = dict(example.pods)["breakeven-dashboard"]["spec"]["containers"]
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    script = next(word for word in item["args"] if word.endswith("app.py"))
    assert f"- {script}\n" in compose
    access = item["args"][item["args"].index("--access") + 1]
    assert f"--secrets.files={access}" in item["args"]
    assert any(access.startswith(m["mountPath"] + "/") for m in item["volumeMounts"])
    assert "--open" not in json.dumps(item)
