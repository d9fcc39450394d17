"""Invoices over HTTP: imported once, compared, posted on approval, under the key's name."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from gateway.control.admin.invoices import ImportInvoiceInput, invoices_import
from ledger.exports.focus import focus_rows
from ledger.exports.focus_columns import FOCUS_1_4
from ledger.invoices import books
from ledger.queries.attempts import senders_of_bills
from ledger.spans import DAY_US, Scope

FOCUS = (
    "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ServiceName\n"
    "2.50,USD,2026-11-01T00:00:00Z,2026-11-02T00:00:00Z,m\n"
)
OWED = (
    "SELECT account, sum(amount_pusd) FROM postings WHERE account LIKE 'payable:provider:%'"
    " GROUP BY account"
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


def test_a_credit_note_never_stands_for_all_that_is_owed(stack, finance) -> None:
    """Red before: a correction of one brought its whole day to the note, and dropped the bill."""
    day = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    given = {"content": f"date,amount\n{day},-0.50\n", "name": "c.csv", "provider": "beta"}
    number = stack.post(FOR + "/import", given, finance.token).json()["invoice"]
    for manner in ("whole", "replaces"):
        for look in (True, False):
            asked = {"invoice": number, "manner": manner, "look": look}
            refused = stack.post(FOR + "/post", asked, finance.token)
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "manner")
            assert "--adds" in refused.text
    done = stack.post(FOR + "/post", {"invoice": number, "manner": "adds"}, finance.token)
    assert done.json()["posted_pusd"] == {day: -500_000_000_000}


def test_two_tiers_of_one_account_are_one_bill_and_one_budget(run_stack) -> None:
    """`beta` is a tier of `alpha`'s account: what it answers is on the bill of `alpha` alone."""
    limited = {"scope": "provider:alpha", "usd": "0.001", "period": "day", "hard": True}

    def adjust(document, _ports) -> None:
        document["providers"]["beta"] |= {"billed_with": "alpha"}
        document["models"] |= {name: {"targets": [f"{name}/m"]} for name in ("alpha", "beta")}

    with run_stack(budgets=[limited], adjust=adjust) as stack:
        finance = stack.key("bills", scopes=("invoices:apply",)).token
        rows = [stack.settled(stack.chat(name, max_tokens=9))[0] for name in ("alpha", "beta")]
        assert [(row["target"], row["provider"]) for row in rows] == [
            ("alpha/m", "alpha"), ("beta/m", "alpha"),
        ]  # fmt: skip
        pusd = sum(row["cost_pusd"] for row in rows)

        day = f"{datetime.fromtimestamp(rows[0]['settled_us'] / 1e6, UTC):%Y-%m-%d}"
        bill = {"content": f"date,model,amount\n{day},m,{Decimal(pusd).scaleb(-12):f}\n",
                "name": "nov.csv"}  # fmt: skip
        elsewhere = stack.post(FOR + "/import", bill | {"provider": "beta"}, finance)
        assert (elsewhere.status_code, elsewhere.json()["error"]["param"]) == (400, "provider")
        assert "import it with --provider alpha" in elsewhere.text
        made = stack.post(FOR + "/import", bill | {"provider": "alpha"}, finance).json()
        shown = stack.post(FOR + "/compare", {"invoice": made["invoice"]}, finance).json()
        assert [(row["booked_pusd"], row["difference_pusd"]) for row in shown["rows"]] == [
            (pusd, 0)
        ]
        project = {"provider": "beta", "project": "p", "team": "search"}
        mapped = stack.post("/v1/organization/projects", project, finance)
        assert (mapped.status_code, mapped.json()["error"]["param"]) == (400, "provider")

        with stack.reader.connect() as connection:
            scope = Scope(rows[0]["opened_us"], rows[1]["settled_us"] + DAY_US)
            charged = [
                dict(zip([column.name for column in FOCUS_1_4.columns], row, strict=True))
                for row in focus_rows(connection, scope, lambda _: None, period_us=DAY_US)
            ]
            owed = connection.execute(text(OWED)).all()
            assert senders_of_bills(connection, ["alpha/m", "beta/m"]) == ["alpha"]
        assert {row["BillingAccountId"] for row in charged} == {"provider:alpha"}
        assert {row["ResourceId"] for row in charged} == {"alpha/m", "beta/m"}
        assert owed == [("payable:provider:alpha", -pusd)]

        long = {"max_tokens": 16_000}  # its hold alone is more than the rest of the account's day
        assert [stack.chat(name, **long).status_code for name in ("alpha", "beta")] == [429, 429]


@pytest.mark.parametrize(
    ("path", "given", "param", "words"),
    [
        ("/import", {"content": "", "name": "x"}, None, "Name the sender of the invoice"),
        ("/import", {"content": "", "name": "x", "provider": "nobody"}, "provider", "no provider"),
        ("/import", {"content": "", "name": "x", "pool": "nobody"}, "pool", "no pool"),
        ("/import", {"content": "date,amount\nx,1\n", "name": "x", "provider": "alpha"},
         "content", "'x' is not a date"),
        ("/import", {"content": "", "name": "x", "provider": "alpha", "format": "xls"},
         "format", "no format `xls`"),
        ("/compare", {"invoice": 99}, None, "There is no invoice 99"),
        ("/compare", {"invoice": 1, "by": "week"}, "by", "Invalid enum value"),
        ("/post", {"invoice": 0}, "invoice", "Expected `int` >= 1"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_member(stack, finance, path, given, param, words) -> None:
    answer = stack.post(FOR + path, given, finance.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert words in answer.json()["error"]["message"]
