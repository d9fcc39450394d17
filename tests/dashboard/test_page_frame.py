"""Around every page: choices, the as-of line, and absence in words."""

import gc
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.page_frame import books_status
from dashboard.periods import dated_period
from ledger.database import open_readonly
from ledger.queries.reads import Freshness
from ledger.reporting_zone import ReportingZone
from ledger.reports.verdict_read import month_scope, read_verdict
from ledger.writing.lag import WriterLag, write_lag

S = 10**6
NOW_US = 1_780_000_000 * S
APP = str(Path(__file__).resolve().parents[2] / "dashboard" / "app.py")


@pytest.fixture
def app(monkeypatch):
    def run(url: str) -> AppTest:
        monkeypatch.setenv("BREAKEVEN_LEDGER_URL", url)
        test = AppTest.from_file(APP, default_timeout=60).run()
        assert not test.exception
        return test

    return run


def test_choices_and_as_of(app, month) -> None:
    test = app(month.url)
    assert test.title[0].value == "Verdict on own GPUs"
    assert test.selectbox(key="team").options == ["All teams", *sorted(
        {first.team_id for first in month.opened}
    )]  # fmt: skip
    assert any(
        "As of" in caption.value and "last record was" in caption.value for caption in test.caption
    )
    test.segmented_control(key="period").set_value("7 d").run()
    assert not test.exception
    test.selectbox(key="team").set_value("finance").run()
    assert not test.exception


def test_what_was_imported_is_looked_through_for_garbage_once(app, month, monkeypatch) -> None:
    """Streamlit collects all garbage after each run of a page: 100 ms of every press."""
    monkeypatch.delitem(sys.modules, "dashboard.navigation")
    gc.unfreeze()
    app(month.url)
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    assert frozen > 10_000


@pytest.mark.parametrize(
    ("lag", "said"),
    [
        (WriterLag(0, NOW_US - 2 * S, False, 0), "everything journaled is applied"),
        (WriterLag(0, NOW_US - 60 * S, False, 0), "journals applied as they were 60 s ago"),
        (
            WriterLag(900, NOW_US - S, False, 0),
            "journals applied as they were 1 s ago, 900 bytes to go",
        ),
        (
            WriterLag(1, NOW_US - 180 * S, True, 0),
            "journals applied as they were 3 min ago, 1 byte to go, the ledger cannot be written",
        ),
        (None, "the last record was applied 2 min ago"),
    ],
)
def test_minutes_without_a_request_are_no_lag(lag: WriterLag | None, said: str) -> None:
    fresh = Freshness(NOW_US - 120 * S, 0, 0)
    assert books_status(fresh, lag, NOW_US) == said


def test_books_that_nothing_was_written_to() -> None:
    assert books_status(Freshness(None, None, 0), None, NOW_US) == ("no journal applied so far")


def test_the_writer_of_this_host_is_asked(app, month, tmp_path, monkeypatch) -> None:
    write_lag(tmp_path, WriterLag(12_000, month.now_us, False, 0))
    monkeypatch.setattr("sys.argv", ["app.py", "--run-dir", str(tmp_path)])
    assert any("12,000 bytes to go" in caption.value for caption in app(month.url).caption)


def test_the_question_names_the_hardware(app, books) -> None:
    test = app(books(peak=2.0, days=1, gpu_type="CPU").url)
    assert test.title[0].value == "Verdict on own machines"


@pytest.mark.parametrize(
    "url",
    ["sqlite:////nowhere/at/all.db", "postgresql://127.0.0.1:1/none", "oracle://x", "not a url"],
)
def test_a_ledger_that_is_away_is_a_sentence(app, url: str) -> None:
    test = app(url)
    assert "The ledger cannot be read" in test.warning[0].value


def test_a_database_without_tables_is_a_sentence(app, tmp_path) -> None:
    (tmp_path / "empty.db").touch()
    test = app(f"sqlite:///{tmp_path / 'empty.db'}")
    assert "was never filled" in test.warning[0].value


def plain(text: str) -> str:
    """Words without marks of code: on the first of a month the verdict names a command."""
    return " ".join(text.replace("`", "").split())


def test_a_month_or_days_are_chosen_and_stand_in_the_address(app, month, text_of) -> None:
    """Figures of a calendar month are those of `ledger report --month`."""
    test = app(month.url)
    test.segmented_control(key="period").set_value("month").run()
    assert not test.exception
    zone = ReportingZone()
    period = dated_period("month", zone, month.now_us)
    assert period.words in text_of(test)
    engine = open_readonly(month.url)
    with engine.connect() as connection:
        scope, hours = month_scope(zone, f"{zone.date_of(month.now_us):%Y-%m}", month.now_us)
        found = read_verdict(connection, scope, month_hours=hours)
    engine.dispose()
    assert f"for a month of {hours} h" in text_of(test)
    said = found.described()["verdict"]["sentence"].partition(", because ")[0]
    assert plain(said) in plain(text_of(test))
    test.segmented_control(key="period").set_value("days").run()
    assert not test.exception
    day = zone.date_of(month.now_us) - timedelta(days=3)
    test.date_input(key="days").set_value((day, day)).run()
    assert not test.exception
    assert f"{day:%d %b %Y}" in text_of(test)
