"""Around every page: choices, the as-of line, and absence in words."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

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
    assert test.title[0].value == "Are the GPUs worth it?"
    assert test.selectbox(key="team").options == ["All teams", *sorted(
        {first.team_id for first in month.opened}
    )]  # fmt: skip
    assert any("As of" in one.value and "journals applied" in one.value for one in test.caption)
    test.segmented_control(key="period").set_value("7 d").run()
    assert not test.exception
    test.selectbox(key="team").set_value("finance").run()
    assert not test.exception


def test_the_question_names_the_hardware(app, books) -> None:
    test = app(books(peak=2.0, days=1, gpu_type="CPU").url)
    assert test.title[0].value == "Are the machines worth it?"


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
