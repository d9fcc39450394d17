"""Spend of groups: a virtual tag's values and tags of requests, by the day."""

import pytest

from dashboard import viewer_identity
from dashboard.data import allocation, days, reads
from dashboard.data.reads import DashboardView
from ledger.database import make_engine
from ledger.manual_entries import VIRTUAL_TAG, ManualEntry, enter
from ledger.spans import DAY_US


@pytest.fixture
def view(books):
    filled = books(days=4, peak=3.0)
    engine = make_engine(filled.url)
    at_us = filled.now_us - DAY_US
    says = {"rules": ["work: team=search|support"]}
    with engine.begin() as connection:
        entry = ManualEntry(0, VIRTUAL_TAG + "product", says, at_us, at_us, "ann")
        enter(connection, entry)
    engine.dispose()
    yield DashboardView(
        filled.url, "7 d", None, filled.now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    reads.engine(filled.url).dispose()


def test_a_value_costs_what_its_teams_cost_and_an_unknown_group_is_not_there(view) -> None:
    assert list(allocation.tag_entries(view)) == ["product"]
    found = allocation.spend_of_groups(view, ("product=work", "product=play", "app=web"))
    teams = days.spent(view, "team", DAY_US)
    work = sum(point.cost_pusd for point in teams if point.name in ("search", "support"))
    assert sum(found.values()) == work > 0
    assert {group for _, group in found} == {"product=work"}
    by_value = {row.value: row.cost_pusd for row in allocation.spend_of_tag(view, "product")}
    assert by_value["work"] == work
    assert allocation.spend_of_tag(view, "none") == []
    assert allocation.metrics(view) == {}


def test_all_values_of_a_name_are_read_at_once(view, monkeypatch) -> None:
    """A metric of two thousand values read the sums of the period two thousand times."""
    read, names = allocation.virtual_spend_by_day, []

    def spy(connection, scope, zone, tag):
        names.append(tag.name)
        return read(connection, scope, zone, tag)

    monkeypatch.setattr(allocation, "virtual_spend_by_day", spy)
    allocation.spend_of_groups(view, ("product=work", "app=a", "product=rest", "app=b"))
    assert names == ["product", "app"]
