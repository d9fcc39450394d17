"""A budget that names no zone has the organisation's; one that does keeps its own."""

import pytest

from gateway.config.reporting_days import with_zones
from gateway.config.schema import Settings

BUDGETS = [{"scope": "team:a", "usd": 5}, {"scope": "team:b", "usd": 5, "timezone": "UTC"}]


def test_budgets_have_the_zone_of_the_file() -> None:
    found = Settings.model_validate({"timezone": "europe/berlin", "budgets": BUDGETS})
    assert found.timezone == "Europe/Berlin"
    assert [budget.timezone for budget in found.budgets] == ["Europe/Berlin", "UTC"]
    plain = Settings.model_validate({"budgets": BUDGETS})
    assert {plain.timezone, *(budget.timezone for budget in plain.budgets)} == {"UTC"}


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"budgets": BUDGETS}, {"timezone": "UTC"}, {"timezone": "UTC", "budgets": 3}],
)
def test_what_has_no_zone_or_no_budgets_stays(document: object) -> None:
    assert with_zones(document) is document


def test_what_is_no_budget_is_left_to_the_schema() -> None:
    assert with_zones({"timezone": "UTC", "budgets": ["x"]})["budgets"] == ["x"]
