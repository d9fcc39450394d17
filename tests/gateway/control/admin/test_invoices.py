"""Invoices over HTTP: imported once, compared, posted on approval, under the key's name."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from gateway.control.admin.invoices import ImportInvoiceInput, invoices_import
from ledger.invoices import books

FOCUS = (
    "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ServiceName\n"
    "2.50,USD,2026-11-01T00:00:00Z,2026-11-02T00:00:00Z,m\n"
)
FOR = "/v1/organization/invoices"


@pytest.fixture(scope="module")
def finance(stack):
    return stack.key("invoices", scopes=("invoices:apply",))


@pytest.fixture(scope="module")
def invoice(stack, finance) -> dict:
    day = f"{datetime.now(UTC) - timedelta(days=2):%Y-%m-%d}"
    content = f"date,model,amount\n{day},m,2.50\n"
    given = {"content": content, "name": "nov.csv", "provider": "alpha"}
    made = stack.post(FOR + "/import", given, finance.token)
    assert made.status_code == 200, made.text
    again = stack.post(FOR + "/import", given, finance.token)
    assert (again.status_code, "imported already" in again.text) == (400, True)
    return made.json()


@pytest.mark.parametrize(
    ("content", "offset_min"),
    [
        ("date,model,amount\n2026-11-01,m,2.50\n", -480),
        (FOCUS, 0),  # its charges have instants
    ],
)
def test_an_invoice_keeps_the_offset_that_its_provider_has(monkeypatch, content, offset_min):
    kept = []
    monkeypatch.setattr(books, "store", lambda _, file, **__: kept.append(file) or 7)
    provider = SimpleNamespace(billing_utc_offset="-08:00", sends_bills=lambda name: name)
    place = SimpleNamespace(
        settings=SimpleNamespace(providers={"a": provider}), ledger=None, by="ann", now_us=1
    )
    given = ImportInvoiceInput(content=content, name="x", provider="a")
    assert invoices_import.work(place, given)["invoice"] == 7
    assert [file.offset_min for file in kept] == [offset_min]


def test_from_the_file_to_books_that_agree(stack, finance, invoice) -> None:
    number = invoice["invoice"]
    shown = stack.post(FOR + "/compare", {"invoice": number}, finance.token).json()
    assert [row["key"] for row in shown["rows"]] == ["m"]
    look = {"invoice": number, "look": True}
    seen = stack.post(FOR + "/post", look, finance.token).json()
    assert seen["of"]["posted_us"] is None
    done = stack.post(FOR + "/post", {"invoice": number}, finance.token).json()
    assert done["posted_pusd"] == seen["posted_pusd"]
    (listed,) = stack.get(FOR, finance.token).json()["data"]
    by = f"key:{finance.key_id}"
    assert (listed["imported_by"], listed["posted_by"]) == (by, by)
    again = stack.post(FOR + "/post", {"invoice": number}, finance.token)
    assert (again.status_code, f"was posted by {by}" in again.text) == (400, True)


@pytest.mark.parametrize(
    ("path", "given", "param", "words"),
    [
        ("/import", {"content": "", "name": "x"}, None, "say whose invoice it is"),
        ("/import", {"content": "", "name": "x", "provider": "nobody"}, "provider", "no provider"),
        ("/import", {"content": "", "name": "x", "pool": "nobody"}, "pool", "no pool"),
        ("/import", {"content": "date,amount\nx,1\n", "name": "x", "provider": "alpha"},
         "content", "'x' is no date"),
        ("/import", {"content": "", "name": "x", "provider": "alpha", "format": "xls"},
         "format", "no format `xls`"),
        ("/compare", {"invoice": 99}, None, "there is no invoice 99"),
        ("/compare", {"invoice": 1, "by": "week"}, "by", "Invalid enum value"),
        ("/post", {"invoice": 0}, "invoice", "Expected `int` >= 1"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_member(stack, finance, path, given, param, words) -> None:
    answer = stack.post(FOR + path, given, finance.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert words in answer.json()["error"]["message"]
