"""The Grafana board and the scrape configuration name only metrics and places that exist."""

import json
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import prometheus_client
import pytest
import yaml

from deploy import parts
from gateway.clock import Clock
from gateway.metrics.host import HostMetrics
from gateway.metrics.requests import Metrics
from gateway.targets.slots import Board, Layout

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
BOARD = DEPLOY / "grafana" / "dashboards" / "breakeven.json"
SOURCE = DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yaml"
SCRAPED = {"instance", "job"}  # labels that Prometheus itself adds
RULES = DEPLOY / "prometheus" / "rules.yml"


def known() -> dict[str, set[str]]:
    """Sample name -> label names, from the metrics objects themselves."""
    names = of_the_host()
    metrics = Metrics(prometheus_client.CollectorRegistry(), models=(), targets=())
    every = (metrics, metrics.policies, metrics.calibration)
    for metric in (one for part in every for one in vars(part).values()):
        if isinstance(metric, prometheus_client.metrics.MetricWrapperBase):
            labels = set(metric._labelnames)
            kinds = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
            for suffix in kinds.get(metric._type, ("",)):
                extra = {"le"} if suffix == "_bucket" else set()
                names[metric._name + suffix] = labels | extra
    return names


def of_the_host() -> dict[str, set[str]]:
    """What is added to the workers' metrics when the page is rendered."""
    with TemporaryDirectory() as place:
        run_dir = Path(place)
        board = Board(run_dir / "board", Layout(workers=1, engines=(), apis=()))
        families = HostMetrics(run_dir, board, stale_s=1.0, clock=Clock()).collect()
        found = {
            family.name + ("_total" if family.type == "counter" else ""): set(family._labelnames)
            for family in families
        }
        board.close()
    return found


def faults(expression: str) -> list[str]:
    """Unknown metric names, and labels that the named metric does not have."""
    names = known()
    used = re.findall(r"\b(?:breakeven|vllm)[a-z_:]*", expression)
    found = [f"no metric {name}" for name in used if name not in names]
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    labels = {label.strip() for group in grouped for label in group.split(",")} - SCRAPED
    have = set().union(*(names.get(name, set()) for name in used))
    return found + [f"no label {label}" for label in sorted(labels - have)]


def panels() -> list[dict]:
    return json.loads(BOARD.read_text(encoding="utf-8"))["panels"]


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_every_query_names_metrics_and_labels_that_exist(panel: dict) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        assert faults(target["expr"]) == []


def alerts() -> list[dict]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return group["rules"]


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_every_alert_names_metrics_and_labels_that_exist(alert: dict) -> None:
    assert faults(alert["expr"]) == []
    told = " ".join(alert["annotations"].values())
    for label in re.findall(r"\$labels\.(\w+)", told):
        assert f"by ({label})" in alert["expr"]


def test_prometheus_reads_the_alerts() -> None:
    prometheus = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text(encoding="utf-8"))
    assert prometheus["rule_files"] == [RULES.name]
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert "./prometheus:/etc/prometheus:ro" in compose["services"]["prometheus"]["volumes"]


@pytest.mark.parametrize(
    "expression",
    ["rate(breakeven_request_total[5m])", "sum by (tenant) (breakeven_spill_total)"],
)
def test_a_wrong_query_would_be_found(expression: str) -> None:
    assert faults(expression)


def test_panels_do_not_overlap_and_use_the_provisioned_source() -> None:
    source = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))["datasources"][0]
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        assert panel["datasource"]["uid"] == source["uid"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells


def test_grafana_asks_the_prometheus_of_compose() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    source = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))["datasources"][0]
    host, port = source["url"].removeprefix("http://").split(":")
    assert f"127.0.0.1:{port}:{port}" in compose["services"][host]["ports"]
    provider = yaml.safe_load(
        (DEPLOY / "grafana/provisioning/dashboards/breakeven.yaml").read_text(encoding="utf-8")
    )["providers"][0]
    mounts = [volume.split(":")[1] for volume in compose["services"]["grafana"]["volumes"]]
    assert provider["options"]["path"] in mounts


def test_prometheus_scrapes_services_of_compose_on_their_ports() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    prometheus = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text(encoding="utf-8"))
    for job in prometheus["scrape_configs"]:
        for target in job["static_configs"][0]["targets"]:
            host, port = target.split(":")
            assert host in compose["services"]
            assert port in json.dumps(compose["services"][host])


@pytest.mark.part("promtool")
def test_promtool_accepts_the_configuration(tmp_path: Path) -> None:
    program = parts.find_promtool()
    check = [program, "check", "config"]
    good = DEPLOY / "prometheus" / "prometheus.yml"
    subprocess.run([*check, good], check=True, capture_output=True)
    (tmp_path / RULES.name).write_text(RULES.read_text())
    bad = tmp_path / "prometheus.yml"
    bad.write_text(good.read_text().replace("scrape_interval", "scrape_intervall"))
    assert subprocess.run([*check, bad], check=False, capture_output=True).returncode != 0


DRIFT = """\
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'breakeven_drift{{pool="chat", instance="a"}}', values: '{values}'}}
    alert_rule_test:
      - eval_time: 20m
        alertname: BreakevenModelDrifts
        exp_alerts: {alerts}
"""
FIRES = """\

          - exp_labels: {severity: warning, pool: chat}
"""


@pytest.mark.part("promtool")
@pytest.mark.parametrize(
    ("values", "fires"), [("1x30", True), ("0x30", False), ("0x17 1x2", False)]
)
def test_a_pool_that_drifts_is_told_and_a_healthy_one_is_not(tmp_path, values: str, fires: bool):
    """The third has drifted for too short a time."""
    program = parts.find_promtool()
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule.pop("annotations", None)  # their wording is no part of when they fire
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    for alerts, holds in ((FIRES, fires), (" []", not fires)):  # the second is the control
        words = DRIFT.format(rules=tmp_path / "rules.yml", values=values, alerts=alerts)
        (tmp_path / "test.yml").write_text(words)
        done = subprocess.run(
            [program, "test", "rules", tmp_path / "test.yml"], check=False, capture_output=True
        )
        assert (done.returncode == 0) is holds, done.stderr.decode() + done.stdout.decode()
