"""Reads: read-only by the database, rounded in time, bars that fit the data."""

from fractions import Fraction

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from dashboard import viewer_identity
from dashboard.data import fleet, reads
from dashboard.data.buckets import bucket_us
from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.reports.survey import survey


def test_the_connection_cannot_write(month) -> None:
    engine = reads.engine.__wrapped__(month.url)
    with engine.connect() as connection, pytest.raises(OperationalError, match="readonly"):
        connection.execute(text("DELETE FROM attempts"))


@pytest.mark.parametrize(("span", "step_s"), [(HOUR_US, 5), (DAY_US, 5), (30 * DAY_US, 20)])
def test_viewers_share_a_read_for_some_seconds(span: int, step_s: int) -> None:
    assert reads.rounded_now_us(span) % (step_s * 10**6) == 0


@pytest.mark.parametrize(
    ("first_h", "expected"),
    [(None, DAY_US), (1, MINUTE_US), (10, 10 * MINUTE_US), (50, HOUR_US), (150, 6 * HOUR_US),
     (700, DAY_US), (9_999, DAY_US)],
)  # fmt: skip
def test_bars_fit_the_data_and_not_the_period(first_h: int | None, expected: int) -> None:
    now = 10_000 * HOUR_US
    first = None if first_h is None else now - first_h * HOUR_US
    assert bucket_us(Scope(now - 30 * DAY_US, now), first) == expected


def test_the_ledger_is_named_by_flag_or_environment(monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["app.py"])
    monkeypatch.setenv("BREAKEVEN_LEDGER_URL", "sqlite:///a.db")
    assert reads.ledger_url() == "sqlite:///a.db"
    monkeypatch.setattr("sys.argv", ["app.py", "--ledger", "sqlite:///b.db"])
    assert reads.ledger_url() == "sqlite:///b.db"
    monkeypatch.setattr("sys.argv", ["app.py", "--ledger"])
    monkeypatch.setenv("BREAKEVEN_LEDGER_URL", "")
    assert reads.ledger_url() is None


@pytest.mark.parametrize("period", ["1 h", "24 h", "7 d"])
def test_traffic_and_bill_cover_the_same_time(books, period: str) -> None:
    filled = books(peak=3.0, days=8)
    view = reads.DashboardView(filled.url, period, None, filled.now_us)
    with reads.open_readonly(filled.url).connect() as connection:
        look = survey(connection, view.scope, bucket_us=HOUR_US, basis=view.basis)
    (bill,) = look.standing.bills
    assert bill.hours == Fraction(view.scope.end_us - view.scope.start_us, HOUR_US)


def test_a_view_is_a_scope() -> None:
    view = reads.DashboardView("u", "7 d", "search", 8 * DAY_US)
    assert view.scope == Scope(DAY_US, 8 * DAY_US, "search")
    later = reads.DashboardView("u", "24 h", None, 8 * DAY_US + MINUTE_US)
    assert later.scope == Scope(7 * DAY_US, 8 * DAY_US + MINUTE_US), "from a full hour on"
    assert set(reads.PERIOD_WORDS) == set(reads.PERIODS)


def test_what_is_of_no_team_is_read_once_for_all(month, monkeypatch) -> None:
    """Another team was chosen, and every sample of the engines was read again."""
    asked: list[str | None] = []
    real = fleet.queries.engine_samples
    monkeypatch.setattr(
        fleet.queries,
        "engine_samples",
        lambda connection, scope, **how: asked.append(scope.team) or real(connection, scope, **how),
    )
    views = [
        reads.DashboardView(
            month.url, "7 d", team, month.now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
        )
        for team in (None, "search", "finance")
    ]
    first, *others = [fleet.engines(view) for view in views]
    assert all(other is first for other in others)
    assert asked == [None]
    surveys = [reads.spending(view) for view in views]
    assert len(set(map(id, surveys))) == 3, "the control: a team's own is the team's"
