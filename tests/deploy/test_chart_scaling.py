"""What the chart asks of KEDA, Prometheus and the Gateway API: valid, about metrics that exist."""

import copy
import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from deploy import parts
from gateway.clock import Clock
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import TableLayout
from gateway.telemetry.metrics.host import HostMetrics
from gateway.telemetry.metrics.requests import RequestMetrics

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
ADDED = ("ScaledObject", "ServiceMonitor", "PrometheusRule", "HTTPRoute")
TARGET_LABELS = {"namespace", "service", "pod"}  # the operator gives them to what it scrapes
RULES = """\
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series: {series}
    promql_expr_test:
      - expr: {query}
        eval_time: 1m
        exp_samples: [{{labels: "{{}}", value: {value}}}]
"""


def queries(chart: Any) -> dict[str, str]:
    return {
        item["metadata"]["name"]: trigger["metadata"]["query"]
        for item in chart.of("ScaledObject")
        for trigger in item["spec"]["triggers"]
    }


@pytest.fixture(scope="module")
def gauges(tmp_path_factory) -> dict[str, set[str]]:
    """Name -> labels, of the gauges on /metrics."""
    place = tmp_path_factory.mktemp("run")
    registry = CollectorRegistry()
    RequestMetrics(registry, models=(), targets=())
    board = SharedLoadTable(place / "board", TableLayout(workers=1, engines=(), apis=()))
    registry.register(HostMetrics(place, board, stale_s=1.0, clock=Clock()))
    found = {
        family.name: set(getattr(family, "_labelnames", ()))
        for family in registry.collect() if family.type == "gauge"
    }  # fmt: skip
    board.close()
    return found


@pytest.mark.part("crds")
def test_every_added_object_is_valid(everything, crd_faults) -> None:
    objects = [item for kind in ADDED for item in everything.of(kind)]
    counted = Counter(object_["kind"] for object_ in objects)
    assert counted == dict.fromkeys(ADDED, 1) | {"ScaledObject": 2, "HTTPRoute": 2}
    assert crd_faults(objects) == [None] * 6


@pytest.mark.part("crds")
@pytest.mark.parametrize(
    ("kind", "way", "value", "named"),
    [
        ("ScaledObject", ("spec", "triggers", 0, "metadata", "threshold"), 200, "threshold"),
        ("ServiceMonitor", ("spec", "endpoints", 0, "interval"), "soon", "interval"),
        ("PrometheusRule", ("spec", "groups", 0, "rules", 0, "expr"), None, "expr"),
        ("HTTPRoute", ("spec", "rules", 0, "timeouts", "request"), "ever", "timeouts"),
    ],
)
def test_control_a_wrong_one_is_not(
    everything, crd_faults, kind: str, way, value: object, named: str
) -> None:
    wrong = copy.deepcopy(everything.of(kind)[0])
    *steps, last = way
    place: Any = wrong
    for step in steps:
        place = place[step]
    place[last] = value
    (fault,) = crd_faults([wrong])
    assert named in str(fault)


def unknown(query: str, gauges: dict[str, set[str]]) -> list[str]:
    found = []
    for name, filters in re.findall(r"(breakeven_\w+)(?:\{(.*?)\})?", query):
        if name not in gauges:
            found.append(name)
            continue
        labels = set(re.findall(r"(\w+)=~?\"", filters)) - TARGET_LABELS
        found += sorted(labels - gauges[name])
    return found


def test_scaling_goes_by_gauges_that_the_gateway_exports(everything, gauges) -> None:
    asked = queries(everything)
    assert set(asked) == {"breakeven-gateway", "breakeven-engine-llama-8b"}
    for query in asked.values():
        assert "breakeven_" in query
        assert unknown(query, gauges) == []


def test_control_a_gauge_that_is_none_is_noticed(everything, gauges) -> None:
    query = queries(everything)["breakeven-engine-llama-8b"]
    assert unknown(query.replace("kv_usage_ratio", "kv_usage"), gauges) == [
        "breakeven_engine_kv_usage"
    ]
    assert unknown(query.replace("engine=~", "pool=~"), gauges) == ["pool"]


def test_through_the_adapter_it_is_the_same_gauge(render, gauges) -> None:
    values = "autoscaling: {gateway: {enabled: true, through: adapter}}"
    chart = render(values)
    metric = chart.one("HorizontalPodAutoscaler", "breakeven-gateway")["spec"]["metrics"][0]
    assert metric["pods"]["metric"]["name"] in gauges
    assert "replicas" not in chart.one("StatefulSet", "breakeven-gateway")["spec"]
    assert chart.of("ScaledObject") == []


def series(engine: str, host: str, value: float) -> dict[str, str]:
    labels = f'engine="{engine}",pod="{host}",namespace="llm",service="breakeven-gateway"'
    return {"series": f"breakeven_engine_kv_usage_ratio{{{labels}}}", "values": f"{value} {value}"}


@pytest.mark.part("promtool")
@pytest.mark.parametrize(("value", "right"), [(1.25, True), (2.5, False)])
def test_an_engine_that_two_hosts_see_counts_once(
    everything, tmp_path: Path, value: float, right: bool
) -> None:
    """As Prometheus computes it. The second figure is the control: both hosts added up."""
    seen = [
        series(f"pool:llama-8b/{index}", f"host-{host}", used)
        for index, used in enumerate((0.75, 0.5)) for host in (0, 1)
    ]  # fmt: skip
    seen.append(series("pool:other/0", "host-0", 0.9))
    (tmp_path / "rules.yml").write_text("groups: []\n")
    query = json.dumps(queries(everything)["breakeven-engine-llama-8b"])
    text = RULES.format(
        rules=tmp_path / "rules.yml", series=json.dumps(seen), query=query, value=value
    )
    (tmp_path / "test.yml").write_text(text)
    program = parts.by_name("promtool").find()
    done = subprocess.run(
        [program, "test", "rules", tmp_path / "test.yml"], check=False, capture_output=True
    )
    assert (done.returncode == 0) is right, done.stdout.decode()


def test_engines_are_not_taken_away_from_their_open_answers(everything) -> None:
    spec = everything.one("ScaledObject", "breakeven-engine-llama-8b")["spec"]
    behaviour = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behaviour["scaleDown"]["selectPolicy"] == "Disabled"
    assert spec["triggers"][0]["metadata"]["threshold"] == "0.75"


def test_the_alerts_are_the_very_file_that_prometheus_reads(everything) -> None:
    (rule,) = everything.of("PrometheusRule")
    path = DEPLOY / "prometheus" / "rules.yml"
    assert rule["spec"] == yaml.safe_load(path.read_text(encoding="utf-8"))
    link = DEPLOY / "helm" / "breakeven" / "files" / "rules.yml"
    assert link.is_symlink()
    assert link.resolve() == path


def test_the_board_is_the_very_file_that_grafana_reads(everything) -> None:
    text = everything.one("ConfigMap", "breakeven-grafana")["data"]["breakeven.json"]
    path = DEPLOY / "grafana" / "dashboards" / "breakeven.json"
    assert json.loads(text) == json.loads(path.read_text(encoding="utf-8"))


def test_hosts_are_scraped_once_each(everything) -> None:
    (monitor,) = everything.of("ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    found = [
        item for item in everything.of("Service") if wanted <= item["metadata"]["labels"].items()
    ]
    assert [finding["metadata"]["name"] for finding in found] == ["breakeven-gateway"]
    ports = {port["name"] for port in found[0]["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


UPSIDE_DOWN = """\
config: {pools: {p: {gpu: {type: L40S, count: 1, billing: on_demand, usd_per_hour: 1, source: x}}}}
engines:
  p: {model: {claim: m, path: x}, gpus: 1, autoscaling: {minReplicas: 3, maxReplicas: 1}}
"""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            "autoscaling: {gateway: {enabled: true, minReplicas: 9, maxReplicas: 2}}",
            r"autoscaling.gateway: minReplicas \(9\) is more than maxReplicas \(2\)",
        ),
        (
            UPSIDE_DOWN,
            r"engines.p.autoscaling: minReplicas \(3\) is more",
        ),
        ("networkPolicy:", "missing property 'networkPolicy'"),
        ("config:", "missing property 'config'"),
    ],
)
def test_what_a_cluster_would_refuse_later_is_refused_in_words(
    render, refused, values: str, words: str
) -> None:
    with pytest.raises(refused, match=words):
        render(values)
