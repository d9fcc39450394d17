"""The page `how-to/alerts.md`: a runbook for every alert of `deploy/prometheus/rules.yml`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.docsite.markdown import code, head, table

PROMETHEUS: Final = Path(__file__).resolve().parents[1] / "prometheus"
RULES: Final = PROMETHEUS / "rules.yml"
RUNBOOKS: Final = PROMETHEUS / "runbooks.yaml"
PAGE: Final = "how-to/alerts.html"


def alerts() -> list[dict[str, Any]]:
    """Return the alerting rules in the order of `rules.yml`."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def runbooks() -> dict[str, list[str]]:
    """Return the steps of each alert, by the alert's name."""
    found: dict[str, list[str]] = yaml.safe_load(RUNBOOKS.read_text(encoding="utf-8"))
    return found


def address_of(alert: str) -> str:
    """Return the address of an alert's runbook, relative to the address of the site."""
    return f"{PAGE}#{alert.lower()}"


def text() -> str:
    """Return the text of the page. Raises `SystemExit` when an alert has no steps."""
    steps = runbooks()
    if missing := [rule["alert"] for rule in alerts() if rule["alert"] not in steps]:
        raise SystemExit(f"{RUNBOOKS}: write the first steps of {', '.join(missing)}")
    rows = (
        (f"[{rule['alert']}](#{rule['alert'].lower()})", rule["labels"]["severity"],
         _plain(rule["annotations"]["summary"]))
        for rule in alerts()
    )  # fmt: skip
    parts = [
        head(
            "Runbooks of alerts",
            "[`deploy/prometheus/rules.yml`](../../deploy/prometheus/rules.yml) has the rules; "
            "the Helm chart installs them with "
            "`monitoring.prometheusRule.enabled`. The annotation `runbook_url` of a rule leads to "
            "its section here, relative to the address at which you serve this site. Commands run "
            "on the gateway's host, or elsewhere with `breakeven --gateway URL`.",
        ),
        table(("alert", "severity", "says"), rows),
    ]
    for rule in alerts():
        parts += _section(rule, steps[rule["alert"]])
    return "\n\n".join(parts) + "\n"


def _section(rule: dict[str, Any], steps: list[str]) -> Iterator[str]:
    notes = rule["annotations"]
    yield f"## {rule['alert']}"
    yield _plain(notes["summary"]) + (f" {notes['description']}" if "description" in notes else "")
    wait = f" for {rule['for']}" if "for" in rule else ""
    expression = " ".join(str(rule["expr"]).split())
    yield f"Severity {rule['labels']['severity']}. Fires when this holds{wait}: {code(expression)}"
    yield "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))


def _plain(summary: str) -> str:
    """Return a summary with names of labels instead of Prometheus templates."""
    words = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"{\1}", summary)
    return re.sub(r"\{\{ \$value[^}]*\}\}", "{value}", words)
