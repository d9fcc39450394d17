"""What scaling earned by day: hours belong to the day in which they begin, and add up."""

from ledger.economics.scaling_score import PlanSum, ScoredSpan
from ledger.reporting_zone import ReportingZone
from ledger.reports.scaling_read import by_day, earned_days

HOUR_US = 3_600_000_000


def hour(number: int) -> ScoredSpan:
    return ScoredSpan(
        number * HOUR_US, HOUR_US, 10, PlanSum(6, 1), PlanSum(3, 2), (20, 4, 1), 3, 0, 4
    )


def test_days_are_the_zones_and_dollars_are_against_the_same_traffic():
    days = by_day([hour(number) for number in range(48)], ReportingZone("Europe/Berlin"))
    assert [(day.date, day.span.covered_us // HOUR_US) for day in days] == [
        ("1970-01-01", 23), ("1970-01-02", 24), ("1970-01-03", 1),
    ]  # fmt: skip
    last = days[-1]
    assert last.against_fixed_pusd == (4 * 3 + 1) - 7
    assert last.against_api_pusd == 20 - 7
    assert last.advice_pusd == 7 - 5
    told = last.described()
    assert told["best_fixed"] == {
        "engines": 1, "rent_pusd": 3, "api_pusd": 4, "total_pusd": 7,
    }  # fmt: skip
    assert told["fixed"]["engines"] == 4


def test_a_pool_without_scores_has_no_days(engine):
    with engine.connect() as connection:
        assert earned_days(connection, "p", 0, HOUR_US) == []
