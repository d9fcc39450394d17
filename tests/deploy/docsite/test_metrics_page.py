"""The page of metrics has every metric that the gateway makes."""

import re

from prometheus_client import CollectorRegistry

from deploy.docsite.metrics_page import entries_of, metrics, recorded, text
from gateway.telemetry.metrics.requests import RequestMetrics

EVERY = re.compile(r'"(breakeven_[a-z_]+)"')


def test_what_a_registry_holds_is_listed_with_its_labels() -> None:
    registry = CollectorRegistry()
    RequestMetrics(registry, models=["m"], targets=["t"])
    listed = {entry.name: entry for entry in metrics()}
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert listed[name].kind == family.type
        assert listed[name].meaning.rstrip(".") == family.documentation.rstrip(".")
        labels = registry._names_to_collectors[family.name]._labelnames
        assert listed[name].labels == tuple(labels)


def test_every_name_in_the_sources_is_listed(pytestconfig) -> None:
    listed = {entry.name.removesuffix("_total") for entry in metrics()}
    sources = sorted((pytestconfig.rootpath / "gateway" / "telemetry").rglob("*.py"))
    found = {name for path in sources for name in EVERY.findall(path.read_text("utf-8"))}
    assert len(found) > 40
    assert found - listed == set()


def test_rules_use_listed_metrics_alone(pytestconfig) -> None:
    rules = (pytestconfig.rootpath / "deploy" / "prometheus" / "rules.yml").read_text("utf-8")
    listed = {entry.name for entry in metrics()}
    used = set(re.findall(r"\bbreakeven_[a-z_]+", rules))
    bare = {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}
    assert bare - listed - {name for name, _ in recorded()} == set()


def test_labels_are_read_from_either_place() -> None:
    source = (
        'Counter("breakeven_a", "Words " "together", ("x", "y"))\n'
        'GaugeMetricFamily("breakeven_b", "Words", labels=["z"])\n'
        'Gauge("other", "Words")\n'
        'NAMES = ("q",)\nCounter("breakeven_c", "Words", NAMES)\n'
    )
    found = [(entry.name, entry.labels, entry.meaning) for entry in entries_of(source)]
    assert found == [
        ("breakeven_a_total", ("x", "y"), "Words together"), ("breakeven_b", ("z",), "Words"),
        ("breakeven_c_total", ("q",), "Words"),
    ]  # fmt: skip


def test_each_has_a_line() -> None:
    shown = text()
    assert all(f"| `{entry.name}` | {entry.kind} |" in shown for entry in metrics())
    assert all(f"| `{name}` |" in shown for name, _ in recorded())
