"""The page `reference/metrics.md`: every Prometheus metric, found by parsing the code."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from deploy.docsite.markdown import code, head, table

RULES_LINK: Final = "[`deploy/prometheus/rules.yml`](../../deploy/prometheus/rules.yml)"
ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = (
    "gateway/telemetry", "gateway/request", "gateway/fleet", "gateway/worker", "gateway/batches",
)  # fmt: skip
RULES: Final = ROOT / "deploy" / "prometheus" / "rules.yml"
_KINDS: Final = {
    "Counter": "counter", "CounterMetricFamily": "counter",
    "Gauge": "gauge", "GaugeMetricFamily": "gauge",
    "Histogram": "histogram", "TargetHistogram": "histogram",
}  # fmt: skip
_PREFIX: Final = "breakeven_"
_TARGET_LABELS: Final = ("target",)  # labels of every `TargetHistogram`


class MetricEntry(NamedTuple):
    """A metric, under the name that `/metrics` shows."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


def metrics() -> list[MetricEntry]:
    """Return every metric of the gateway, sorted by name."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    found = {entry.name: entry for path in paths for entry in entries_of(path.read_text("utf-8"))}
    return [found[name] for name in sorted(found)]


def entries_of(source: str) -> Iterator[MetricEntry]:
    """Yield the metrics that the source of a module creates."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kind = _KINDS.get(node.func.id)
            name, meaning = (_text(node.args, place) for place in (0, 1))
            if kind and name.startswith(_PREFIX):
                shown = f"{name}_total" if kind == "counter" else name
                is_target = node.func.id == "TargetHistogram"
                labels = _TARGET_LABELS if is_target else _labels(node, constants)
                yield MetricEntry(shown, kind, labels, meaning)


def recorded() -> list[tuple[str, str]]:
    """Return name and expression of each recording rule."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [
        (rule["record"], " ".join(str(rule["expr"]).split()))
        for group in groups
        for rule in group["rules"]
        if "record" in rule
    ]


def text() -> str:
    """Return the text of the page."""
    rows = (
        (code(entry.name), entry.kind, ", ".join(code(label) for label in entry.labels),
         f"{entry.meaning}.")
        for entry in metrics()
    )  # fmt: skip
    return "\n\n".join([
        head(
            "Metrics",
            "`GET /metrics` of each host has them, in Prometheus' text form. Every worker answers "
            "for its host. Labels come from the configuration and from closed lists; any other "
            "value is `other`. Alerts on them: [runbooks](../how-to/alerts.md).",
        ),
        table(("metric", "kind", "labels", "meaning"), rows),
        "## Recording rules",
        f"{RULES_LINK} has them; alerts and the Grafana board use them.",
        table(("series", "expression"), ((code(name), code(expr)) for name, expr in recorded())),
    ]) + "\n"  # fmt: skip


def _text(arguments: list[ast.expr], place: int) -> str:
    node = arguments[place] if place < len(arguments) else None
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _labels(node: ast.Call, constants: Mapping[str, ast.expr]) -> tuple[str, ...]:
    given = [word.value for word in node.keywords if word.arg in {"labels", "labelnames"}]
    for value in (*given, *node.args[2:3]):
        found = constants.get(value.id) if isinstance(value, ast.Name) else value
        if isinstance(found, ast.Tuple | ast.List):
            return tuple(str(item.value) for item in found.elts if isinstance(item, ast.Constant))
    return ()
