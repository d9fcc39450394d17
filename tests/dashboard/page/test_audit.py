"""Bills beside the books, the last verification, adjustments, who changed what; and their lack."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import streamlit as st

from dashboard import formatting
from dashboard.page.audit import CAUSES, CHECKS, _differing_days, change_row, invoice_name
from ledger.database import make_engine, migrate
from ledger.invoices import books as invoices
from ledger.invoices.files import parse
from ledger.invoices.reconcile import DifferenceCause, ReconciliationLine, model_of
from ledger.seals.audit_log import AuditEntry, AuditLog
from ledger.verify.checks import CHECKS as EVERY_CHECK
from ledger.verify.checks import Finding, VerifyResult, verify
from ledger.verify.results import record_verification

USD = 10**12
DAY_US = 86_400_000_000
EXTRA = Decimal("1.25")


def booked_by_day(filled) -> dict[str, int]:
    sums: dict[str, int] = {}
    for first, last in filled.pairs:
        if first.provider == "anthropic":
            day = datetime.fromtimestamp(last.settled_us / 1e6, tz=UTC).date().isoformat()
            sums[day] = sums.get(day, 0) + (last.cost_pusd or 0)
    return sums


@pytest.fixture(scope="module")
def billed(books):
    """Three days of one provider, billed $1.25 more than booked on the last."""
    filled = books(peak=4.0, days=3)
    days = booked_by_day(filled)
    name = model_of("claude-haiku-4-5")
    lines = ["date,item,amount"]
    for n, (day, pusd) in enumerate(sorted(days.items()), 1):
        more = EXTRA if n == len(days) else 0
        lines.append(f"{day},{name},{Decimal(pusd) / USD + more:f}")
    engine = make_engine(filled.url)
    text = "\n".join(lines)
    invoices.store(engine, parse(text), party="provider:anthropic", name="a.csv", by="ada", at_us=5)
    AuditLog(engine).follow(at_us=filled.now_us)
    engine.dispose()
    return filled


def test_a_difference_stands_where_it_is(page, billed, text_of) -> None:
    test = page("audit", billed.url)
    shown = text_of(test)
    booked = sum(booked_by_day(billed).values())
    assert re.search(rf"In the books\s+{re.escape(formatting.money(booked))}", shown)
    assert re.search(r"Difference\s+\+\$1\.25", shown)
    assert "breakeven invoices post 1" in shown
    table = test.dataframe[0].value
    differing = table[table["difference"] != 0]
    assert len(differing) == 1
    assert differing.index[0] == 0, "what differs comes first"
    assert differing.iloc[0]["difference"] == pytest.approx(1.25)
    assert "+$1.25 on 1 day; " in shown
    assert len(test.get("vega_lite_chart")) == 1


def test_days_that_differ_both_ways_do_not_hide_each_other() -> None:
    days = {
        date(2026, 11, n + 1): [ReconciliationLine("m", USD + pusd, USD, 1)]
        for n, pusd in enumerate((5 * USD, -5 * USD, 0))
    }
    assert _differing_days(days) == ["+$5.00 on 1 day, -$5.00 on 1 day; 1 day agrees."]


def test_posting_it_is_an_adjustment_of_nobody(page, billed, text_of) -> None:
    engine = make_engine(billed.url)
    invoices.post_invoice(
        engine, 1, by="ada", at_us=billed.now_us + 2 * DAY_US
    )  # its days are over
    engine.dispose()
    test = page("audit", billed.url)
    shown = text_of(test)
    assert "on nobody's expense" in shown
    assert "Posted" in shown
    assert re.search(r"Difference\s+\$0\.00", shown)


def test_who_changed_what_is_listed(page, billed) -> None:
    test = page("audit", billed.url)
    changes = test.dataframe[len(test.dataframe) - 1].value
    assert "gpu contracts 1" in set(changes["what"])
    told = change_row(AuditEntry(3, 5, "gpu_contracts", "2", "made", None, (("rate", 4, 5),)))
    assert (told["by"], told["from and to"]) == ("system", "rate: 4 to 5")


def test_a_change_is_told_in_words_and_not_in_columns() -> None:
    fields = (
        ("recorded_us", None, 1_795_449_494_134_911), ("pusd_per_hour", 34 * 10**10, 5 * 10**11),
        ("flags", None, "[]"), ("note", None, None), ("machine", "a", None),
    )  # fmt: skip
    told = change_row(AuditEntry(3, 5, "gpu_contracts", "2", "made", "ada", fields))
    assert told["from and to"] == (
        "recorded: 23 Nov 2026 15:58:14 UTC; per hour: $0.34 to $0.50; machine: a to nothing"
    )


def test_the_books_of_these_tests_hold(books) -> None:
    """As a gateway's do: what a page shows of findings is not the fixture's own."""
    engine = make_engine(books(days=2, peak=6.0).url)
    with engine.connect() as connection:
        assert verify(connection).findings == ()
    engine.dispose()


def test_the_last_verification_is_shown_with_its_findings(page, billed, text_of) -> None:
    assert "No result of `breakeven ledger verify` is kept" in text_of(page("audit", billed.url))
    engine = make_engine(billed.url)
    finding = Finding("holds_end", "r7.1", "settled, but still held")
    record_verification(engine, VerifyResult(("holds_end",), (finding,), ()), actor="ada", at_us=9)
    engine.dispose()
    st.cache_resource.clear()
    test = page("audit", billed.url)
    assert "1 finding" in text_of(test)
    assert test.dataframe[0].value.iloc[0]["check"] == "every hold ends"


def test_the_checks_can_be_run_from_the_page(page, billed, text_of) -> None:
    test = page("audit", billed.url)
    test.button(key="verify").click().run()
    assert not test.exception
    for _ in range(2):  # a refresh leaves it there
        said = [error.value for error in (*test.success, *test.error)]
        assert any("finding" in line or "all hold" in line for line in said)
        test.run()


def test_empty_books_say_what_to_do(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    shown = text_of(page("audit", url))
    for needed in (
        "breakeven ledger verify",
        "breakeven invoices import",
        "Nothing is entered yet",
    ):
        assert needed in shown


def test_every_cause_and_every_check_has_its_words() -> None:
    assert set(CAUSES) == set(DifferenceCause)
    assert set(CHECKS) == {check.__name__ for check in EVERY_CHECK}


def test_a_bill_is_named_by_whose_it_is() -> None:
    day = datetime(2026, 11, 1, tzinfo=UTC).date()
    bill = invoices.ImportedInvoice(
        3, "gpu:chat", "csv", "x", 2, day, day, 5 * USD, 1, "ada", None, None
    )
    assert invoice_name(bill) == "3: gpu:chat, 2026-11-01 to 2026-11-01, $5.00, not posted"
