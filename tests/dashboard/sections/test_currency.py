"""Amounts in other money name the rate's day and source; old rates say so."""

from datetime import date
from fractions import Fraction

from dashboard import viewer_identity
from dashboard.data.reads import DashboardView
from dashboard.sections import currency
from dashboard.viewer import Viewer
from ledger.currencies import Currency
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE

FAY = "fay@example.com"
EUR = Currency("EUR", Fraction(9, 10), date(2026, 11, 2), "ECB", "fay")


def test_a_figure_names_its_rate_and_an_old_one_its_age() -> None:
    shown = currency.line(EUR, 1_234 * 10**12, date(2026, 11, 9))
    assert shown == "**EUR 1,110.60** (0.9 a dollar on 02 Nov 2026, says ECB)"
    assert "**8 days old**: enter a newer rate" in currency.line(EUR, 1, date(2026, 11, 10))
    assert currency.rows([EUR], date(2026, 11, 10))[0]["stands"] == "stale: older than 7 days"


def test_it_is_entered_by_name_and_stands_beside_what_was_spent(
    books, serving, page, text_of, monkeypatch
) -> None:
    served = serving(books(days=1, peak=1.0).url)
    monkeypatch.setenv(GATEWAY, served.address)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(served.state / KEY_FILE))
    monkeypatch.setattr(viewer_identity, "AT_THIS_MACHINE", Viewer(FAY, DashboardRole.FINANCE))
    assert "EUR" not in text_of(page("answer", served.url, period="24 h"))
    test = page("rates", served.url)
    (rate,) = [widget for widget in test.number_input if widget.label == "One dollar is"]
    (code,) = [widget for widget in test.text_input if widget.label == "Currency (ISO 4217)"]
    (source,) = [widget for widget in test.text_input if widget.label == "Who says so"]
    (button,) = [widget for widget in test.button if widget.label == "Enter the rate"]
    rate.set_value(-1.0)
    (said,) = [error.value for error in button.click().run().error]
    assert "the currency is empty (EUR, GBP, ...); one dollar is more than 0 of anything" in said
    assert "nobody says so: name the source" in said
    (rate,) = [widget for widget in test.number_input if widget.label == "One dollar is"]
    (code,) = [widget for widget in test.text_input if widget.label == "Currency (ISO 4217)"]
    (source,) = [widget for widget in test.text_input if widget.label == "Who says so"]
    code.set_value("eur")
    rate.set_value(0.9)
    source.set_value("ECB")
    (button,) = [widget for widget in test.button if widget.label == "Enter the rate"]
    button.click().run()
    assert test.success[0].value == f"One dollar is 0.9 EUR, by {FAY}."
    told = text_of(page("answer", served.url, period="7 d"))
    assert "0.9 a dollar on" in told
    view = DashboardView(served.url, "30 d", None, 0, who=lambda: viewer_identity.AT_THIS_MACHINE)
    (line,) = currency.lines(view, 10**13)
    assert line.startswith("**EUR 9.00**")
