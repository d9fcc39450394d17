"""One object for reports, HTTP and CSV: the books of a period and the verdict from now on."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from ledger.economics.assumptions import AssumptionSheet, PoolAssumptions
from ledger.economics.fleet_verdict import judge
from ledger.economics.value_curve import ValueCurve
from ledger.money import PUSD_PER_USD as USD
from ledger.reporting_zone import UTC_DAYS, ReportingZone
from ledger.reports.verdict_read import MonthError, coverage_text, month_scope, read_verdict
from ledger.spans import HOUR_US, Scope


def us(*day: int) -> int:
    return round(datetime(*day, tzinfo=UTC).timestamp()) * 10**6


def test_a_calendar_month_has_its_own_hours_and_ends_with_the_clock() -> None:
    assert month_scope(UTC_DAYS, "2026-02", us(2026, 5, 1)) == (
        Scope(us(2026, 2, 1), us(2026, 3, 1)), 28 * 24,
    )  # fmt: skip
    assert month_scope(UTC_DAYS, "2025-12", us(2026, 5, 1))[0].end_us == us(2026, 1, 1)
    now = us(2026, 5, 3)
    assert month_scope(UTC_DAYS, "2026-05", now) == (Scope(us(2026, 5, 1), now), 744)
    hour_less = month_scope(ReportingZone("Europe/Berlin"), "2026-03", us(2026, 5, 1))
    assert hour_less == (Scope(us(2026, 2, 28, 23), us(2026, 3, 31, 22)), 743)


@pytest.mark.parametrize("month", ["2026-13", "may", "2026-05-01", "2027-01"])
def test_a_month_that_is_none_or_has_not_begun_is_refused(month) -> None:
    with pytest.raises(MonthError, match=month):
        month_scope(UTC_DAYS, month, us(2026, 5, 1))


def test_the_month_moves_the_sheet_and_a_team_moves_nothing(random_sqlite) -> None:
    ledger = random_sqlite
    with ledger.reader.connect() as connection:
        end_us = 10**6 * 2_000_000_000
        scope = Scope(end_us - 30 * 24 * HOUR_US, end_us)
        plain = read_verdict(connection, scope)
        team = read_verdict(connection, Scope(scope.start_us, end_us, "search"))
        long = read_verdict(connection, scope, month_hours=744)
    assert plain.described() == team.described()
    assert long.verdict.sheet.month_hours == 744
    assert set(plain.described()["books"]) == {
        "fixed_usd", "gpu_usd", "ops_usd", "api_usd", "hours",
    }  # fmt: skip


def test_a_pool_with_few_hours_is_named_beside_one_with_all_of_them() -> None:
    """The pool with the most hours once spoke for all of them."""
    pools = tuple(
        PoolAssumptions(name, 1, Fraction(hours), USD, capacity_per_minute=10_000)
        for name, hours in (("old", 720), ("new", 10), ("late", 30))
    )
    curve = ValueCurve((), (), 1, 10_000, ())
    scope = Scope(0, 720 * HOUR_US)

    def note(*chosen: PoolAssumptions) -> str | None:
        curves = {pool.pool: curve for pool in chosen}
        return coverage_text(judge(AssumptionSheet(chosen), curves), scope)

    end = "of the period's 720 hours: the books have no more of own GPUs."
    assert note(pools[0]) is None
    assert note(pools[1]) == f"It is judged from 10.0 {end}"
    assert note(*pools) == f"Pool new is judged from 10.0 and pool late is judged from 30.0 {end}"
