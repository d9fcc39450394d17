"""The Grafana board and the scrape configuration name only metrics and places that exist."""

import functools
import json
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import prometheus_client
import pytest
import typer.main
import yaml

from deploy import parts
from gateway.cli.app import app
from gateway.clock import Clock
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import TableLayout
from gateway.telemetry.metrics.fleet import FleetMetrics
from gateway.telemetry.metrics.gpus import GpuMetrics
from gateway.telemetry.metrics.host import HostMetrics
from gateway.telemetry.metrics.requests import RequestMetrics
from gateway.telemetry.otel.sending import ExportCounters

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
BOARD = DEPLOY / "grafana" / "dashboards" / "breakeven.json"
SOURCE = DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yaml"
SCRAPED = {"instance", "job"}  # labels that Prometheus itself adds
RULES = DEPLOY / "prometheus" / "rules.yml"
BY = re.compile(r"by \(([^)]*)\)")


def known() -> dict[str, set[str]]:
    """Sample name -> label names, from the metrics objects themselves."""
    names = of_the_host()
    metrics = RequestMetrics(prometheus_client.CollectorRegistry(), models=(), targets=())
    every = (metrics, metrics.pace, metrics.policies, metrics.calibration, metrics.legs,
             ExportCounters(None))  # fmt: skip
    for variable in (variable for part in every for variable in vars(part).values()):
        # A histogram by target waits for its flush in front of the registered one.
        metric = getattr(variable, "_registered", variable)
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
        board = SharedLoadTable(run_dir / "board", TableLayout(workers=1, engines=(), apis=()))
        families = [*HostMetrics(run_dir, board, stale_s=1.0, clock=Clock()).collect()]
        families += FleetMetrics(run_dir, Clock()).collect()
        families += GpuMetrics(run_dir, Clock()).collect()
        found = {
            family.name + ("_total" if family.type == "counter" else ""): set(family._labelnames)
            for family in families
        }
        board.close()
    return found


def faults(expression: str) -> list[str]:
    """Unknown metric names, and labels that the named metric does not have."""
    names = known()
    names |= {
        rule["record"]: {word for group in BY.findall(rule["expr"]) for word in group.split(", ")}
        for rule in rules("record")
    }
    used = re.findall(r"\b(?:breakeven|vllm)[a-z0-9_:]*", expression)
    found = [f"no metric {name}" for name in used if name not in names]
    grouped = BY.findall(expression)
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


@functools.cache
def rules(kind: str) -> list[dict]:
    """`alert`s or `record`s of every group."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


@pytest.mark.parametrize("alert", rules("alert"), ids=lambda alert: alert["alert"])
def test_every_alert_names_metrics_and_labels_that_exist(alert: dict) -> None:
    assert faults(alert["expr"]) == []
    assert alert["annotations"]["runbook"], "what to do"
    told = " ".join(alert["annotations"].values())
    grouped = {label.strip() for group in BY.findall(alert["expr"]) for label in group.split(",")}
    assert set(re.findall(r"\$labels\.(\w+)", told)) <= grouped


@pytest.mark.parametrize("alert", rules("alert"), ids=lambda alert: alert["alert"])
def test_commands_of_a_runbook_can_be_given_as_they_stand(alert: dict) -> None:
    """They exist; what is done to one engine names it."""
    text = re.sub(r"\{\{ \$labels\.\w+ \}\}", "NAME", alert["annotations"]["runbook"])
    for line in re.findall(r"`breakeven ([^`]+)`", text):
        command, words = typer.main.get_command(app), line.split()
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        if line.startswith(("engine logs", "engine restart")):
            assert words, line


@pytest.mark.parametrize("rule", rules("record"), ids=lambda rule: rule["record"])
def test_every_recorded_figure_names_metrics_and_labels_that_exist(rule: dict) -> None:
    assert faults(rule["expr"]) == []


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


KV, DRIFTS = 'breakeven_engine_kv_usage_ratio{engine="a"}', 'breakeven_drift{pool="chat"}'
FINDING = 'breakeven_usage_findings_total{target="a/m",finding="%s"}'
REFUSED = 'breakeven_refusals_total{reason="%s"}'
MET, MISSED = (f'breakeven_slo_total{{backend="own",met="{word}"}}' for word in ("yes", "no"))
SPILL, OWN = 'breakeven_spill_total{reason="ttft"}', 'breakeven_requests_total{target="pool:a/0"}'
BEHIND, AWAY = "breakeven_ledger_lag_seconds", "breakeven_ledger_away"
ASIDE, BLIND = "breakeven_ledger_quarantined_total", 'breakeven_static_decisions_total{cause="%s"}'
DAMAGED, STALLED = "breakeven_journal_findings", "breakeven_journal_stalled"
HEALTHY = 'breakeven_engine_healthy{engine="a"}'
SLOWED = 'breakeven_gpu_slowed{instance="h",gpu="0",reason="%s"}'
GPU_SILENT = "breakeven_gpu_silent_seconds"
SPANS = 'breakeven_otel_spans_total{instance="h",outcome="%s"}'
HOST = '{instance="h"}'
UP = 'up{instance="h",job="any"}'
AGED = 'breakeven_fleet_plan_age_seconds{instance="h",pool="p"}'
FLEET = 'breakeven_fleet_findings{pool="p",kind="%s"}'
STARTS = 'breakeven_fleet_changes_total{pool="p",verb="start"}'
FORECAST = 'breakeven_fleet_forecasts_total{pool="p",outcome="%s"}'
PARKED = 'breakeven_fleet_parked{engine="a"}'
POOL = {"pool": "p"}
LEGS = 'breakeven_engine_legs_total{engine="a",role="decode",outcome="%s"}'
MOVED, MOVING = (f'breakeven_kv_transfer{word}_total{{engine="a"}}' for word in ("s", "_seconds"))
UNHEARD = 'breakeven_engine_kv_events_missed_total{engine="a"}'
BID = 'breakeven_engine_bid_price_usd_per_hour{engine="pool:a/0"}'


def estimates(predicted: int, count: int = 2, backend: str = "own") -> dict[str, str]:
    """Samples of predictions of which ten a minute came."""
    said = {"_predicted": predicted, "_observed": 10, "s": count}
    labels = f'{{estimate="ttft_seconds",backend="{backend}"}}'
    return {f"breakeven_estimate{key}_total{labels}": f"0+{by}x120" for key, by in said.items()}


TRIED = 'breakeven_requests_total{target="a/m",status="%s"}'
FIRING = (  # alert, its labels, samples
    ("BreakevenGatewayDown", {"instance": "h"}, {UP: "1x80 0x40", BEHIND + HOST: "0x80 _x40"}),
    ("BreakevenLedgerBehind", {"instance": "h"}, {BEHIND + HOST: "90x120"}),
    ("BreakevenLedgerAway", {"instance": "h"}, {AWAY + HOST: "0x80 1x40"}),
    ("BreakevenLedgerQuarantine", {"instance": "h"}, {ASIDE + HOST: "0x40 1x80"}),
    ("BreakevenJournalDamaged", {"instance": "h"}, {DAMAGED + HOST: "0x80 2x40"}),
    ("BreakevenJournalStalled", {"instance": "h"}, {STALLED + HOST: "0x80 1x40"}),
    ("BreakevenDecidesBlindly", {"cause": "telemetry"}, {BLIND % "telemetry": "0x87 3x20"}),
    ("BreakevenEngineUnhealthy", {"engine": "a"}, {HEALTHY: "1x80 0x40"}),
    (
        "BreakevenGpuSlowed",
        {"instance": "h", "gpu": "0", "reason": "thermal"},
        {SLOWED % "thermal": "0x80 1x40", SLOWED % "power_cap": "1x120"},
    ),
    ("BreakevenGpuSilent", {"instance": "h"}, {GPU_SILENT + HOST: "9x80 130+15x40"}),
    ("BreakevenTracesLost", {"instance": "h"}, {SPANS % "lost": "0x60 0+5x60"}),
    ("BreakevenModelDrifts", {"pool": "chat"}, {DRIFTS: "1x120"}),
    ("BreakevenSloBurnsFast", {}, {MET: "0+1x120", MISSED: "0+4x120"}),
    ("BreakevenSloBurnsSlowly", {}, {MET: "0+6x120", MISSED: "0+4x120"}),
    ("BreakevenBudgetSpent", {}, {REFUSED % "budget": "0x85 1x20"}),
    (
        "BreakevenTargetFails",
        {"target": "a/m"},
        {TRIED % "finished": "0+1x120", TRIED % "timeout": "0+2x120"},
    ),
    ("BreakevenTargetFails", {"target": "a/m"}, {TRIED % "rejected": "0+1x120"}),  # a bad key
    (
        "BreakevenUsageDisputed",
        {"target": "a/m", "finding": "over_bound"},
        {FINDING % "over_bound": "0x85 1x20"},
    ),
    ("BreakevenKvHeadroomLow", {"engine": "a"}, {KV: "0.97x120"}),
    ("BreakevenSpillsMuch", {}, {SPILL: "0+4x120", OWN: "0+6x120"}),
    ("BreakevenPredictsBadly", {"estimate": "ttft_seconds"}, estimates(25)),
    ("BreakevenPredictsBadly", {"estimate": "ttft_seconds"}, estimates(4)),
    ("BreakevenEnginesScarce", {"engine": "pool:a/0"}, {BID: "12x120"}),
    (
        "BreakevenKvTransfersFail",
        {"engine": "a"},
        {LEGS % "done": "0+10x120", LEGS % "failed": "0+1x120"},
    ),
    ("BreakevenKvTransfersSlow", {"engine": "a"}, {MOVED: "0+10x120", MOVING: "0+20x120"}),
    ("BreakevenKvEventsLost", {"engine": "a"}, {UNHEARD: "0+1x120"}),
    ("BreakevenFleetUnplanned", {"instance": "h"} | POOL, {AGED: "0+60x120"}),
    ("BreakevenFleetUnreachable", POOL, {FLEET % "unreachable": "0x60 1x60"}),
    ("BreakevenFleetOrphan", {"kind": "orphan"} | POOL, {FLEET % "orphan": "0x60 1x60"}),
    ("BreakevenFleetNeverReady", POOL, {FLEET % "never_ready": "0x80 1x40"}),
    ("BreakevenFleetFlaps", POOL, {STARTS: "0+1x120"}),
    (
        "BreakevenFleetForecastOff",
        POOL,
        {FORECAST % "inside": "0+1x120", FORECAST % "outside": "0+2x120"},
    ),
)
CALM = (
    ("BreakevenGatewayDown", {}, {UP: "1x120", BEHIND + HOST: "0x120"}),
    ("BreakevenGatewayDown", {}, {UP: "1x88 0x20", BEHIND + HOST: "0x88 _x20"}),  # too short a time
    ("BreakevenGatewayDown", {}, {UP: "0x120"}),  # something else that is scraped
    ("BreakevenLedgerBehind", {}, {BEHIND + HOST: "50x120"}),
    ("BreakevenLedgerBehind", {}, {BEHIND + HOST: "0x88 90x20"}),  # for too short a time
    ("BreakevenLedgerAway", {}, {AWAY + HOST: "0x120"}),
    ("BreakevenLedgerQuarantine", {}, {ASIDE + HOST: "0x10 1x120"}),  # more than an hour ago
    ("BreakevenJournalDamaged", {}, {DAMAGED + HOST: "2x60 0x60"}),  # acknowledged
    ("BreakevenJournalStalled", {}, {STALLED + HOST: "1x60 0x60"}),  # over
    ("BreakevenDecidesBlindly", {}, {BLIND % "telemetry": "0x60 3x60"}),  # over
    ("BreakevenEngineUnhealthy", {}, {HEALTHY: "1x87 0x20"}),  # for too short a time
    ("BreakevenGpuSlowed", {}, {SLOWED % "power_cap": "1x120"}),  # usual under full load
    ("BreakevenGpuSlowed", {}, {SLOWED % "thermal": "0x112 1x8"}),  # for too short a time
    ("BreakevenGpuSilent", {}, {GPU_SILENT + HOST: "15x120"}),
    ("BreakevenTracesLost", {}, {SPANS % "sent": "0+5x120", SPANS % "lost": "0x60 9x60"}),  # over
    ("BreakevenModelDrifts", {}, {DRIFTS: "0x87 1x20"}),  # for too short a time
    ("BreakevenSloBurnsFast", {}, {MET: "0+4x120", MISSED: "0+6x120"}),
    ("BreakevenSloBurnsFast", {}, {MET: "0+1x70 1000+9x40", MISSED: "0+99x70 6930x40"}),  # over
    ("BreakevenSloBurnsSlowly", {}, {MET: "0+8x120", MISSED: "0+2x120"}),
    ("BreakevenBudgetSpent", {}, {REFUSED % "queue_full": "0x85 1x20"}),
    (
        "BreakevenTargetFails",
        {},
        {TRIED % "finished": "0+2x120", TRIED % "upstream_error": "0+1x120"},
    ),
    (  # of bad requests of clients
        "BreakevenTargetFails",
        {},
        {TRIED % "finished": "0+1x120", TRIED % "rejected": "0+9x120"},
    ),
    ("BreakevenTargetFails", {}, {TRIED % "timeout": "0x85 3x20"}),  # too few to tell
    ("BreakevenUsageDisputed", {}, {FINDING % "partly_read": "0x85 1x20"}),
    ("BreakevenKvHeadroomLow", {}, {KV: "0.90x120"}),
    ("BreakevenSpillsMuch", {}, {SPILL: "0+2x120", OWN: "0+8x120"}),
    ("BreakevenPredictsBadly", {}, estimates(15)),
    ("BreakevenPredictsBadly", {}, estimates(25, count=0)),  # too few to tell
    ("BreakevenPredictsBadly", {}, estimates(4, backend="api")),
    ("BreakevenEnginesScarce", {}, {BID: "9x120"}),
    ("BreakevenEnginesScarce", {}, {BID: "0x80 40x10"}),  # for too short a time
    ("BreakevenEngineUnhealthy", {}, {HEALTHY: "0x120", PARKED: "1x120"}),  # its plan stopped it
    ("BreakevenKvTransfersFail", {}, {LEGS % "done": "0+100x120", LEGS % "failed": "0+1x120"}),
    ("BreakevenKvTransfersSlow", {}, {MOVED: "0+10x120", MOVING: "0+1x120"}),
    ("BreakevenKvTransfersSlow", {}, {MOVED: "0x120", MOVING: "0x120"}),  # nothing moves
    ("BreakevenKvEventsLost", {}, {UNHEARD: "0x60 5x60"}),  # for a moment
    ("BreakevenFleetUnplanned", {}, {AGED: "10x120"}),
    ("BreakevenFleetUnreachable", {}, {FLEET % "held": "1x120"}),
    ("BreakevenFleetOrphan", {}, {FLEET % "orphan": "1x60 0x60"}),  # somebody ended it
    ("BreakevenFleetNeverReady", {}, {FLEET % "never_ready": "0x120"}),
    ("BreakevenFleetFlaps", {}, {STARTS: "0x60 10x60"}),
    (
        "BreakevenFleetForecastOff",
        {},
        {FORECAST % "inside": "0+2x120", FORECAST % "outside": "0+1x120"},
    ),
    ("BreakevenFleetForecastOff", {}, {FORECAST % "outside": "0x85 9x20"}),  # too few to tell
)


def test_every_alert_is_seen_to_fire_and_to_keep_still() -> None:
    every = {alert["alert"] for alert in rules("alert")}
    assert {alert for alert, *_ in FIRING} == {alert for alert, *_ in CALM} == every


FAILED = re.compile(r"name: case (\d+)\.,?\s+alertname: \w+, time: \w+,\s+exp:\[(\])?")


def write_rule_test(folder: Path, alert: str, cases: dict[int, tuple]) -> Path:
    """Ask of each case that the alert fires and that it is still; only its own rule is read."""
    read = yaml.safe_load(RULES.read_text())
    for group in read["groups"]:
        group["rules"] = [rule for rule in group["rules"] if rule.get("alert", alert) == alert]
        for rule in group["rules"]:
            rule.pop("annotations", None)  # their wording is not a part of when they fire
    (folder / f"{alert}.rules.yml").write_text(yaml.safe_dump(read))
    (severity,) = (each["labels"]["severity"] for each in rules("alert") if each["alert"] == alert)
    asked = {"eval_time": "90m", "alertname": alert}
    tests = [
        {
            "name": f"case {place}.",
            "interval": "1m",
            "input_series": [{"series": key, "values": value} for key, value in samples.items()],
            "alert_rule_test": [
                asked | {"exp_alerts": [{"exp_labels": {"severity": severity, **labels}}]},
                asked | {"exp_alerts": []},
            ],
        }
        for place, (_, labels, samples) in cases.items()
    ]
    words = {"rule_files": [f"{alert}.rules.yml"], "evaluation_interval": "1m", "tests": tests}
    path = folder / f"{alert}.yml"
    path.write_text(yaml.safe_dump(words))
    return path


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[int, bool]]:
    """Of all cases what did not hold: that it fires (`True`) or that it is still (`False`)."""
    folder, files = tmp_path_factory.mktemp("rules"), []
    every = dict(enumerate((*FIRING, *CALM)))
    for alert in sorted({alert for alert, *_ in every.values()}):
        cases = {place: case for place, case in every.items() if case[0] == alert}
        files.append(write_rule_test(folder, alert, cases))
    done = subprocess.run(
        [parts.find_promtool(), "test", "rules", *files],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    told = done.stdout + done.stderr
    found = FAILED.findall(told)
    assert len(found) == len(every), told
    return {(int(place), not nothing) for place, nothing in found}


@pytest.mark.part("promtool")
@pytest.mark.parametrize("place", range(len(FIRING) + len(CALM)))
def test_an_alert_fires_when_it_is_so_and_not_else(failed, place: int) -> None:
    """Each is its own control: what is expected of it holds, and the opposite does not."""
    fires = place < len(FIRING)
    assert ((place, True) in failed) is not fires
    assert ((place, False) in failed) is fires
