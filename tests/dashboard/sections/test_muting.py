"""A series is muted by name: pages and reports tell it no more, until somebody hears it again."""

from fractions import Fraction

import pytest

from ledger.identity.people import DashboardRole
from ledger.reports.movements import Anomaly
from ledger.reports.muting import muted_series

FAY, JOE = "fay@example.com", "joe@example.com"


@pytest.fixture(scope="module")
def gateway(books, serving):
    return serving(books(days=9, peak=2.0).url)


@pytest.fixture
def looking(page_as, monkeypatch):
    burst = Anomaly(0, "search", 9 * 10**12, Fraction(10**12))
    monkeypatch.setattr("dashboard.sections.movement.anomalies", lambda *_: [burst])

    def look(person: str | None = FAY, role: DashboardRole = DashboardRole.FINANCE):
        return page_as("spend", person, role)

    return look


def muted(gateway) -> list[str]:
    with gateway.engine.connect() as connection:
        return [*muted_series(connection, 2 * 10**15)]


def test_a_series_is_muted_and_heard_again_by_name(gateway, looking, text_of) -> None:
    test = looking()
    assert "Far above their usual day" in text_of(test)
    test.selectbox(key="muted-team").set_value("search").run()
    test.button(key="mute-team").click().run()
    assert not test.exception
    assert muted(gateway) == ["team/search"]
    shown = text_of(test).replace("\\", "")
    assert "Far above their usual day" not in shown
    assert f"Muted: search, by {FAY}" in shown
    test.selectbox(key="muted-team").set_value("search").run()
    test.button(key="unmute-team").click().run()
    assert muted(gateway) == []
    assert "Far above their usual day" in text_of(test)


def test_who_may_not_is_refused_by_the_gateway(gateway, looking) -> None:
    test = looking(JOE, DashboardRole.FINANCE)
    test.selectbox(key="muted-team").set_value("search").run()
    test.button(key="mute-team").click().run()
    assert "does not have the scope `contracts:apply`" in test.error[0].value
    assert muted(gateway) == []
