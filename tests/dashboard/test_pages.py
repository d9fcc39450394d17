"""The list of pages, and its place when no ledger is named."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

from dashboard import pages

APP = Path(__file__).resolve().parents[2] / "dashboard" / "app.py"


def test_every_module_of_a_page_has_its_place() -> None:
    modules = {path.stem for path in APP.parent.glob("page_*.py")}
    assert {place.module.__name__.rpartition(".")[2] for place in pages.PLACES} == modules


def test_without_a_named_ledger_it_says_how_to_name_one(monkeypatch) -> None:
    monkeypatch.delenv("BREAKEVEN_LEDGER_URL", raising=False)
    test = AppTest.from_file(str(APP), default_timeout=60).run()
    assert not test.exception
    assert "No ledger is named" in test.info[0].value
