"""Bills from the browser: the verbs of the gateway on real books, asked before and told after."""

import time
from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
import streamlit as st

from dashboard import admin_client
from dashboard.admin_client import AdminRefused
from dashboard.viewer import Viewer
from gateway.config.settings import Settings
from gateway.control.admin.invoices import VERBS
from gateway.control.admin.refusals import is_refused
from gateway.control.admin.verb import OperationContext
from ledger.database import make_engine
from ledger.identity.people import DashboardRole
from ledger.invoices import books as invoices
from ledger.invoices.books import PostingMode
from ledger.invoices.files import parse

USD = 10**12
SETTINGS = Settings.model_validate(
    {"providers": {"anthropic": {"api_key_env": "K"}, "openai": {"api_key_env": "K"}}}
)
DAY = "2026-11-02"


class VerbsDesk:
    """The gateway's own verbs on these books, as somebody; without HTTP between."""

    def __init__(self, viewer: Viewer, url: str) -> None:
        self.viewer = viewer
        self.engine = make_engine(url)
        self.done: list[str] = []

    def post(self, path: str, **given: object) -> dict:
        verb = next(item for item in VERBS if item.path == path)
        now_us = time.time_ns() // 1000
        place = OperationContext(SETTINGS, self.viewer.name, now_us, lambda: self.engine, None)
        try:
            answer = verb.work(place, msgspec.convert(given, verb.given))
        except Exception as error:
            if not is_refused(error):
                raise
            raise AdminRefused(str(error), 400, None) from error
        if not given.get("look"):
            self.done.append(path)
        return answer


@pytest.fixture
def filled(books):
    return books(peak=2.0, days=2)


@pytest.fixture
def desk_as(monkeypatch, filled):
    made = []

    def make(name: str | None, role: DashboardRole = DashboardRole.FINANCE) -> VerbsDesk:
        viewer = Viewer(name, role)
        monkeypatch.setattr("dashboard.viewer_identity.AT_THIS_MACHINE", viewer)
        made.append(VerbsDesk(viewer, filled.url))
        monkeypatch.setattr(admin_client, "desk", lambda _who: made[-1])
        return made[-1]

    yield make
    for made_value in made:
        made_value.engine.dispose()


def billed(url: str, pusd: int, day: str = DAY) -> None:
    engine = make_engine(url)
    text = f"date,item,amount\n{day},claude-haiku-4-5,{pusd / USD:f}\n"
    bill = parse(text)
    invoices.store(engine, bill, party="provider:anthropic", name="b.csv", by="ada", at_us=5)
    engine.dispose()


def keys(test) -> set[str]:
    return {button.key for button in test.button}


def test_what_would_be_posted_is_shown_first_and_posted_by_name(page, filled, desk_as, text_of):
    billed(filled.url, 3 * USD)
    desk = desk_as("fay@example.com")
    test = page("audit", filled.url)
    test.button(key="bills-post").click().run()
    assert test.code[0].value == f"{DAY}  +$3.00"
    assert desk.done == [], "the control: nobody has said yes"
    test.button(key="bills-yes").click().run()
    assert test.success[0].value == ("Bill 1 is posted: +$3.00 of adjustments, by fay@example.com.")
    with desk.engine.connect() as connection:
        stored = invoices.find_invoice(connection, 1)
    assert stored.posted_by == "fay@example.com"
    assert "bills-post" not in keys(test)


def test_a_bill_of_days_that_are_not_over_says_until_when_it_waits(page, filled, desk_as, text_of):
    today = datetime.fromtimestamp(time.time(), UTC).date()
    billed(filled.url, 3 * USD, day=str(today))
    desk = desk_as("fay@example.com")
    test = page("audit", filled.url)
    test.button(key="bills-post").click().run()
    said = text_of(test)
    tomorrow = today + timedelta(days=1)
    assert f"It cannot be posted before {tomorrow:%d %b} 00:" in said
    assert "would be owed twice. Post it the day after" in said
    assert "bills-yes" not in keys(test), "what it would post by now is not shown to be agreed to"
    assert list(test.code) == []
    with pytest.raises(AdminRefused, match="a day \\(UTC\\) that is not over"):
        desk.post("/invoices/post", invoice=1, manner="whole")


def test_who_leaves_it_has_posted_nothing(page, filled, desk_as):
    billed(filled.url, 3 * USD)
    desk = desk_as("fay@example.com")
    test = page("audit", filled.url)
    test.button(key="bills-post").click().run()
    test.button(key="bills-no").click().run()
    assert "bills-yes" not in keys(test)
    assert desk.done == []


def test_a_bill_is_read_from_a_file(page, filled, desk_as, text_of):
    desk = desk_as("fay@example.com")
    test = page("audit", filled.url)
    text = f"date,item,amount\n{DAY},claude-haiku-4-5,1.25\n".encode()
    test.file_uploader(key="bills-file").set_value(("november.csv", text, "text/csv")).run()
    test.selectbox(key="bills-sender").set_value("provider anthropic").run()
    test.button(key="bills-read").click().run()
    assert "Bill 1 is read: 1 line, $1.25. Nothing is posted yet." in test.success[0].value
    with desk.engine.connect() as connection:
        (stored,) = invoices.list_invoices(connection)
    assert (stored.party, stored.imported_by) == ("provider:anthropic", "fay@example.com")
    assert stored.first_day == date.fromisoformat(DAY)
    assert "1: provider:anthropic" in test.selectbox(key="bill").options[0]


def test_a_file_that_is_none_is_told_with_its_fault(page, filled, desk_as):
    desk_as("fay@example.com")
    test = page("audit", filled.url)
    given = ("b.csv", b"date,item,amount\nyesterday,x,1\n", "text/csv")
    test.file_uploader(key="bills-file").set_value(given).run()
    test.button(key="bills-read").click().run()
    assert "b.csv is not an invoice that can be read; nothing was imported" in test.error[0].value


def test_who_has_no_name_is_told_the_command_and_gets_no_button(page, filled, desk_as, text_of):
    billed(filled.url, 3 * USD)
    desk_as(None, DashboardRole.ADMIN)
    test = page("audit", filled.url)
    assert "breakeven invoices post 1" in text_of(test)
    assert not {"bills-post", "bills-read"} & keys(test)


def test_a_credit_note_says_how_it_is_posted_and_agrees_then(page, filled, desk_as, text_of):
    billed(filled.url, -3 * USD)
    told = text_of(page("audit", filled.url))
    assert "breakeven invoices post 1 --adds" in told
    assert "billing_utc_offset" not in told
    desk = desk_as("fay@example.com")
    test = page("audit", filled.url)
    test.button(key="bills-post").click().run()
    assert test.radio(key="bills-manner").value == PostingMode.ADDS
    desk.post("/invoices/post", invoice=1, manner="adds")
    st.cache_resource.clear()
    told = text_of(page("audit", filled.url))
    assert "All 1 day agree" in told
    assert "owed beside what the books have" in told
