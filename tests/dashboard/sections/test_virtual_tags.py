"""A virtual tag is entered on Spend, divides its attempts, and cost per unit follows its values."""

import pytest

from dashboard.data import allocation
from ledger.identity.people import DashboardRole
from ledger.manual_entries import METRIC, VIRTUAL_TAG, entries

FAY = "fay@example.com"
RULES = "work: team=search|support\nlarge: model=chat-large"


@pytest.fixture(scope="module")
def gateway(books, serving):
    return serving(books(days=9, peak=2.0).url)


def entered(gateway, kind: str) -> list[str]:
    with gateway.engine.connect() as connection:
        return [f"{entry.name} by {entry.actor}" for entry in entries(connection, kind)]


def test_a_virtual_tag_is_entered_read_and_withdrawn(gateway, page_as, text_of) -> None:
    test = page_as("spend", FAY, DashboardRole.FINANCE)
    assert "None is entered." in text_of(test)
    test.text_input(key="virtual-name").set_value("product").run()
    test.text_area(key="virtual-rules-a new virtual tag").set_value("work team=search").run()
    assert "rule 1, `work team=search`" in test.error[0].value.replace("\\", "")
    test.button(key="virtual-enter").click().run()
    assert "Nothing was changed" in test.error[0].value
    test.text_area(key="virtual-rules-a new virtual tag").set_value(RULES).run()
    test.button(key="virtual-enter").click().run()
    assert not test.exception
    assert entered(gateway, VIRTUAL_TAG) == [f"product by {FAY}"]
    (table,) = (item.value for item in test.dataframe if "product" in item.value.columns)
    assert set(table["product"]) == {"work", "large", "(no rule)"}
    (keys,) = (item.value for item in test.dataframe if "key" in item.value.columns)
    assert table["spend"].sum() == pytest.approx(keys["spend"].sum(), rel=1e-12)
    assert table["attempts"].sum() == keys["attempts"].sum()
    test.selectbox(key="virtual-which").set_value("product").run()
    test.button(key="virtual-withdraw").click().run()
    assert "None is entered." in text_of(test)


def test_a_kept_metric_is_divided_into_what_its_tag_cost(gateway, page_as, monkeypatch) -> None:
    test = page_as("spend", FAY, DashboardRole.FINANCE)
    test.text_input(key="virtual-name").set_value("product").run()
    test.text_area(key="virtual-rules-a new virtual tag").set_value(RULES).run()
    test.button(key="virtual-enter").click().run()
    days: list[str] = []
    monkeypatch.setattr(
        "dashboard.sections.business_metric.spent_by_day", _spied(days), raising=True
    )
    text = "day,value,tag\n2026-01-01,5,product=work\n"
    test.file_uploader(key="metric-file").set_value(("t.csv", text.encode(), "text/csv")).run()
    day = sorted(days)[-2]
    text = f"day,value,tag\n{day},4,product=work\n{day},4,product=nothing\n"
    test.file_uploader(key="metric-file").set_value(("t.csv", text.encode(), "text/csv")).run()
    assert not test.exception
    found = _costs(test)
    assert found["product=nothing"]["cost of one"] == "not known"
    assert found["product=work"]["days"] == 1
    assert found["product=work"]["cost"] != "$0.00"
    test.text_input(key="metric-name").set_value("tickets").run()
    test.button(key="metric-keep").click().run()
    assert not test.exception
    assert [name.split("/")[0] for name in entered(gateway, METRIC)] == ["tickets", "tickets"]
    assert test.selectbox(key="metric-which").value == "tickets"
    assert _costs(test) == found
    assert allocation.metrics.reach.name == "HOUSE"


def _spied(days: list[str]):
    from dashboard.sections import business_metric  # noqa: PLC0415 - what is spied on

    read = business_metric.spent_by_day

    def spy(*given):
        found = read(*given)
        days.extend(str(day) for day, _ in found)
        return found

    return spy


def _costs(test) -> dict[str, dict]:
    (table,) = (item.value for item in test.dataframe if "cost of one" in item.value.columns)
    return {row["of"]: row for row in table.to_dict("records")}
