"""Whose a project is, said over a gateway by finance people."""

import pytest

from dashboard import viewer_identity
from dashboard.viewer import Viewer
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE
from ledger.invoices import books as invoices
from ledger.invoices.files import parse
from ledger.manual_entries import project_teams

FAY = "fay@example.com"


@pytest.fixture
def gateway(books, serving, monkeypatch):
    served = serving(books(days=1, peak=1.0).url)
    monkeypatch.setenv(GATEWAY, served.address)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(served.state / KEY_FILE))
    monkeypatch.setattr(viewer_identity, "AT_THIS_MACHINE", Viewer(FAY, DashboardRole.FINANCE))
    return served


def test_a_project_is_a_teams_by_name(gateway, page, text_of) -> None:
    assert "none is imported" in text_of(page("rates", gateway.url))
    bill = parse("date,item,amount,project\n2026-11-02,m,1,proj_1\n")
    invoices.store(gateway.engine, bill, party="provider:openai", name="b", by="ada", at_us=5)
    test = page("rates", gateway.url, period="7 d")
    {button.label: button for button in test.button}["Say whose it is"].click().run()
    assert test.error[0].value == "Nothing is entered: name the project, as its bills do."
    fields = {widget.label: widget for widget in test.text_input}
    fields["Project, as on its bills"].set_value("proj_1")
    fields["Team; empty: nobody's"].set_value("search")
    {button.label: button for button in test.button}["Say whose it is"].click().run()
    assert test.success[0].value == f"openai/proj_1 is search's, says {FAY}."
    assert test.dataframe[-1].value["team"].tolist() == ["search"]
    with gateway.engine.connect() as connection:
        assert project_teams(connection, "openai", 2**62) == {"proj_1": "search"}
