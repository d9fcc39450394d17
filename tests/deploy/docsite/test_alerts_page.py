"""Every alert has a runbook with steps, and its rule leads there."""

import re
import shlex

import pytest

from deploy.docsite import alerts_page
from deploy.docsite.alerts_page import address_of, alerts, runbooks, text
from deploy.docsite.command_tree import fault_of
from deploy.docsite.staging import anchors

STEPS = [(name, step) for name, steps in runbooks().items() for step in steps]


def test_every_alert_has_its_runbook_and_no_other() -> None:
    assert list(runbooks()) == [rule["alert"] for rule in alerts()], "in the order of rules.yml"
    assert all(len(steps) >= 3 for steps in runbooks().values())


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_the_rule_leads_to_its_section(rule) -> None:
    address = rule["annotations"]["runbook_url"]
    assert address == address_of(rule["alert"])
    assert address.partition("#")[2] in anchors(text())


def test_commands_of_the_steps_are_ones_that_the_command_line_accepts() -> None:
    faults = {}
    for name, step in STEPS:
        for command in re.findall(r"`breakeven ([^`]*)`", step):
            fault = fault_of(shlex.split(command))
            if fault:
                faults[name, command] = fault
    assert faults == {}


def test_no_template_of_prometheus_is_shown() -> None:
    shown = text()
    assert "{{" not in shown
    assert "{value}" in shown
    assert "{instance}" in shown


def test_an_alert_without_steps_is_named(monkeypatch) -> None:
    """Red before: a KeyError of the page's own."""
    known = runbooks()
    missing = next(iter(known))
    others = {name: steps for name, steps in known.items() if name != missing}
    monkeypatch.setattr(alerts_page, "runbooks", lambda: others)
    with pytest.raises(SystemExit, match=f"write the first steps of {missing}"):
        text()
