"""What an alert counts is there at 0 before it happens: Prometheus sees no increase in a birth."""

import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from gateway.clock import Clock
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.degraded_decider import DECISION, TELEMETRY, DegradedDecider
from gateway.table_layout import TableLayout
from gateway.telemetry.metrics.fleet import FleetMetrics
from gateway.telemetry.metrics.requests import RequestMetrics
from gateway.telemetry.otel.sending import ExportCounters
from ledger.fleet.scaling_notes import ScalingNote, write_scaling

RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "rules.yml"
COUNTED = re.compile(r"(?:rate|increase)\((breakeven_\w+_total)(?:\{(\w+)=\"(\w+)\"\})?\[")
# begin at 0 with the process that counts them (`gateway.telemetry.metrics.host`)
HOSTS = ("breakeven_ledger_quarantined_total", "breakeven_engine_kv_events_missed_total")
# A share of many: what is lost is one scrape's, and their labels are names of targets and reasons.
SHARES = ("breakeven_requests_total", "breakeven_spill_total", "breakeven_estimate",
          "breakeven_engine_legs_total", "breakeven_kv_transfer")  # fmt: skip


@pytest.fixture
def begun(tmp_path: Path) -> CollectorRegistry:
    """What a worker shows that has just begun."""
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=(), targets=())
    board = SharedLoadTable(tmp_path / "board", TableLayout(workers=1, engines=(), apis=()))
    DegradedDecider(board, metrics)
    ExportCounters(registry)
    metrics.flush()
    board.close()
    write_scaling(tmp_path, [ScalingNote("main", "advise", 1, 1, 0)])  # as a start leaves it
    registry.register(FleetMetrics(tmp_path, Clock()))
    return registry


def counted() -> set[tuple[str, str, str]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    found = {text for rule in rules for text in COUNTED.findall(rule)}
    return {
        finding
        for finding in found
        if finding[0] not in HOSTS and not finding[0].startswith(SHARES)
    }


@pytest.mark.parametrize(("name", "label", "value"), sorted(counted()))
def test_what_a_rule_counts_begins_at_0(begun, name: str, label: str, value: str) -> None:
    found = [
        sample.value
        for family in begun.collect()
        for sample in family.samples
        if sample.name == name and (not label or sample.labels[label] == value)
    ]
    assert found
    assert set(found) == {0.0}


@pytest.mark.parametrize("cause", [TELEMETRY, DECISION])
def test_each_cause_of_a_blind_decision_begins_at_0(begun, cause: str) -> None:
    assert begun.get_sample_value("breakeven_static_decisions_total", {"cause": cause}) == 0
