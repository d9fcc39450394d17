"""The cost of a unit is the day's bar over the day's metric."""

from datetime import date, timedelta
from fractions import Fraction

import pytest
import streamlit as st

from dashboard import viewer_identity
from dashboard.data import reads
from dashboard.data.reads import DashboardView
from dashboard.sections import business_metric
from ledger.reports.business_metric import MetricDay, MetricUnitCost, TagGroup, unit_costs
from ledger.reports.series import spend
from ledger.spans import DAY_US


def test_days_add_up_to_what_the_page_shows(month) -> None:
    who = viewer_identity.AT_THIS_MACHINE
    view = DashboardView(month.url, "30 d", None, month.now_us, who=lambda: who)
    survey = reads.spending(view)
    found = business_metric.spent_by_day(view, survey)
    days = sorted({day for day, team in found if team is None})
    assert len(days) in (28, 29, 30), "the first and last day are parts"
    early = DashboardView(month.url, "30 d", None, month.now_us - 20 * DAY_US, who=lambda: who)
    known = business_metric.spent_by_day(early, reads.spending(early))
    first = date(1970, 1, 1) + timedelta(month.opened[0].opened_us // DAY_US)
    assert known
    assert min(day for day, _ in known) > first, "before the books nothing is known, not $0"
    bars: dict[date, int] = {}
    for point in spend(survey):
        day = survey.zone.date_of(point.start_us)
        bars[day] = bars.get(day, 0) + point.pusd
    assert {day: found[day, None] for day in days} == {day: bars.get(day, 0) for day in days}
    (cost,) = unit_costs([MetricDay(days[3], 8)], found)
    assert cost.pusd_per_unit == Fraction(bars[days[3]], 8)
    st.cache_resource.clear()


def test_a_tags_units_are_of_all_teams_and_so_is_what_is_divided(month, monkeypatch) -> None:
    """Red before: with a team chosen, that team's part of a tag was divided by all its tickets."""
    read = business_metric.allocation
    monkeypatch.setattr(read, "spend_of_groups", lambda _, tags: {(0, text): 5 for text in tags})
    team = month.opened[0].team_id
    who = viewer_identity.AT_THIS_MACHINE
    found = {}
    for chosen in (None, team):
        view = DashboardView(month.url, "30 d", chosen, month.now_us, who=lambda: who)
        spent = business_metric.spent_by_day(view, reads.spending(view), ["product=work"])
        found[chosen] = {group for _, group in spent}
    assert TagGroup("product=work") in found[None]
    assert found[team] == {team}
    st.cache_resource.clear()


def test_rows_say_what_is_not_known() -> None:
    day = date(2026, 11, 2)
    costs = [
        MetricUnitCost(None, Fraction(4), 10**12, 1, ()),
        MetricUnitCost("ads", Fraction(0), 0, 0, (day,)),
    ]
    assert [(row["of"], row["cost of one"]) for row in business_metric.rows(costs)] == [
        ("everyone", "$0.25"), ("ads", "not known"),
    ]  # fmt: skip
    assert business_metric._skipped(costs) == [
        "Of ads 1 day of the metric is not in here: 2026-11-02 first."
    ]


@pytest.mark.parametrize("idle", ["apart", "shared by use"])
def test_the_table_by_team_adds_up_to_the_bill_either_way(page, month, idle) -> None:
    test = page("spend", month.url)
    test.selectbox(key="idle-share").set_value(idle).run()
    assert not test.exception
    table = test.dataframe[0].value
    assert ("Idle (unallocated)" in set(table["team"])) is (idle == "apart")
    who = viewer_identity.AT_THIS_MACHINE
    view = DashboardView(month.url, "30 d", None, reads.rounded_now_us(30 * 86_400 * 10**6),
                         who=lambda: who)  # fmt: skip
    survey = reads.spending(view)
    whole = survey.api_pusd + survey.own_pusd
    assert table["spend"].sum() == pytest.approx(whole / 10**12, rel=1e-9)
