"""People change things in a real browser, over a real gateway: by name, once, and while they may.

Each signs in at a provider as one does. What is typed wrong is said beside its field; what another
tab or another person did meanwhile is told, and nothing is done twice.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from deploy.quietports import find_quiet_port
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE
from ledger.invoices import books as invoices
from ledger.manual_entries import CURRENCY, RATE, SCENARIO, entries
from ledger.prices.stored import load_price_book

ROOT = Path(__file__).resolve().parents[2]
ADA, FAY, JOE, EVE = (f"{name}@example.com" for name in ("ada", "fay", "joe", "eve"))
FILE = """
[auth]
redirect_uri = "{address}/oauth2callback"
cookie_secret = "a secret that is long enough for cookies"
client_id = "breakeven"
client_secret = "of no matter to this provider"
server_metadata_url = "{provider}/.well-known/openid-configuration"
[people."ada@example.com"]
role = "admin"
[people."fay@example.com"]
role = "finance"
[people."joe@example.com"]
role = "viewer"
[people."eve@example.com"]
role = "viewer"
teams = ["search"]
"""
LIMIT_MS = 60_000
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
BILL = b"date,item,amount\n2026-11-02,claude-haiku-4-5,3.00\n"
PRICES = b"name,input_usd_per_million,output_usd_per_million,source,source_date\n"


def until_it_answers(process: subprocess.Popen, url: str) -> None:
    deadline = time.monotonic() + LIMIT_MS / 1e3
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{url} does not answer")


@dataclass
class House:
    """A provider, a gateway and a dashboard; `access`: who may what, as the dashboard reads it."""

    address: str
    access: Path
    gateway: Any
    browser: Browser

    def arrives(self, name: str, path: str = "") -> Page:
        page = self.browser.new_context().new_page()
        page.set_default_timeout(LIMIT_MS)
        page.goto(f"{self.address}?live=false")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/oauth2/authorize**")
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_url(f"{self.address}/**")
        shows(page, name)
        goes(page, self.address, path)
        return page

    def entered(self, kind: str) -> list[str]:
        with self.gateway.engine.connect() as connection:
            return [f"{entry.name} by {entry.actor}" for entry in entries(connection, kind)]

    def bills(self) -> list[invoices.ImportedInvoice]:
        with self.gateway.engine.connect() as connection:
            return invoices.list_invoices(connection)


@pytest.fixture(scope="module")
def house(books, serving, chromium, tmp_path_factory) -> Iterator[House]:
    expect.set_options(timeout=LIMIT_MS)
    state = tmp_path_factory.mktemp("house")
    gateway = serving(books(days=3, peak=3.0).url)
    port, asked = find_quiet_port(), find_quiet_port()
    address, provider = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{asked}"
    access = state / "access.toml"
    access.write_text(FILE.format(address=address, provider=provider))
    users = [{"sub": item, "email": item, "email_verified": True} for item in (ADA, FAY, JOE, EVE)]
    claims = [word for user in users for word in ("--user-claims", json.dumps(user))]
    program = str(Path(sys.executable).with_name("oidc-provider-mock"))
    environ = {
        **os.environ, "PYTHONPATH": str(ROOT), "HOME": str(state), GATEWAY: gateway.address,
        "BREAKEVEN_LEDGER_URL": gateway.url, KEY_FILE_VARIABLE: str(gateway.state / KEY_FILE),
    }  # fmt: skip
    dashboard = [
        sys.executable, "-m", "streamlit", "run", str(ROOT / "dashboard" / "app.py"),
        "--server.headless", "true", "--server.port", str(port), "--server.address", "127.0.0.1",
        "--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none",
        "--secrets.files", str(access), "--", "--access", str(access),
    ]  # fmt: skip
    running = []
    with (state / "log").open("wb") as log:
        for argv, answers in (
            (
                [program, "--port", str(asked), *claims],
                f"{provider}/.well-known/openid-configuration",
            ),
            (dashboard, f"{address}/_stcore/health"),
        ):
            running.append(subprocess.Popen(argv, env=environ, stdout=log, stderr=log))
            until_it_answers(running[-1], answers)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            yield House(address, access, gateway, browser)
            browser.close()
        for process in running:
            process.terminate()
            process.wait(timeout=20)


def goes(page: Page, address: str, path: str) -> None:
    page.goto(f"{address}/{path}?live=false&period=7+d")


def shows(page: Page, *words: str) -> None:
    for word in words:
        expect(page.get_by_text(word).first).to_be_visible()


def types(page: Page, **said: str) -> None:
    """Into fields by their labels, `_` for a blank."""
    for label, text in said.items():
        field = page.get_by_label(label.replace("_", " "), exact=False).first
        field.fill(text)
        field.press("Tab")


def presses(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def gives(page: Page, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "text/csv", "buffer": content}
    page.get_by_test_id("stFileUploader").locator("input").set_input_files([file])
    shows(page, name)


@pytest.mark.long
def test_finance_enters_a_rate_and_other_money(house) -> None:
    page = house.arrives(FAY, "rates")
    shows(page, "Enter a rate")
    for typed, said in (
        ("-3", "is more than 0"),
        ("1e12", "is more than 0"),
        ("0", "amortisation"),
    ):
        types(page, USD_an_hour_of_one_GPU=typed)
        shows(page, said)
        expect(page.get_by_role("button", name="Enter it")).to_be_disabled()
    types(page, USD_an_hour_of_one_GPU="0.75", Where_the_rate_comes_from="contract 2026-18")
    expect(page.get_by_role("button", name="Enter it")).to_be_enabled()
    presses(page, "Enter it")
    shows(page, "+GPU: $0.750000 an hour")
    presses(page, "Yes, enter it")
    shows(page, f"The rate of llama-70b is entered, at once, by {FAY}.", "$0.75 an hour")
    assert house.entered(RATE) == [f"llama-70b by {FAY}"]
    types(page, Currency="zzz", One_dollar_is="0.9", Who_says_so="![ECB](http://evil.example/p)")
    presses(page, "Enter the rate")
    shows(page, "Nothing is entered")
    types(page, Currency="eur")
    presses(page, "Enter the rate")
    shows(page, "One dollar is 0.9 EUR")
    assert house.entered(CURRENCY) == [f"EUR by {FAY}"]
    page.goto(f"{house.address}/spend?live=false&period=7+d&money=EUR")
    shows(page, "Amounts are in EUR: 0.9 a dollar")
    expect(page.locator("img[src*='evil']")).to_have_count(0)


@pytest.mark.long
def test_a_bill_is_brought_in_and_posted_once(house) -> None:
    """Two tabs ask at once; what the first did the second is told, and nothing is posted twice."""
    page = house.arrives(FAY, "audit")
    for name, content, said in (
        ("no.csv", b"date,item,amount\nyesterday,x,1\n", "is no invoice that can be read"),
        ("november.csv", BILL, "Bill 1 is read: 1 line, $3.00. Nothing is posted yet."),
    ):
        assert house.bills() == []
        page.get_by_text("Bring in a bill").click()
        gives(page, name, content)
        if name == "no.csv":  # who it was of stays chosen
            page.get_by_role("combobox", name="Whose bill it is").click()
            page.get_by_role("option", name="provider openai").click()
        presses(page, "Read it")
        shows(page, said)
    other = page.context.new_page()
    other.set_default_timeout(LIMIT_MS)
    goes(other, house.address, "audit")
    for tab in (page, other):
        presses(tab, "Post the difference")
        shows(tab, "2026-11-02  +$3.00")
    presses(page, "Yes, post it")
    shows(page, "Bill 1 is posted: +$3.00 of adjustments")
    presses(other, "Yes, post it")
    shows(other, "posted")
    expect(other.get_by_role("button", name="Yes, post it")).to_have_count(0)
    (bill,) = house.bills()
    assert bill.posted_by == FAY


@pytest.mark.long
def test_prices_are_approved_by_name(house) -> None:
    page = house.arrives(FAY, "prices")
    page.get_by_role("combobox", name="Prices stated by").click()
    page.get_by_role("option", name="a file").click()
    gives(page, "acme.csv", PRICES + b"acme/tiny,0.1,0.4,contract,2026-11-02\n")
    presses(page, "Look what would change")
    shows(page, "1 new version")
    presses(page, "Approve these prices")
    presses(page, "Yes, approve them")
    shows(page, f"Stored: 1 version of acme.csv, approved by {FAY}.")
    assert load_price_book(house.gateway.engine).find("acme/tiny", 2**62) is not None


@pytest.mark.long
def test_a_scenario_is_saved_and_another_one_opens_it(house) -> None:
    page = house.arrives(ADA, "breakeven")
    types(page, GPU_rate="0.2")
    page.get_by_text("Saved scenarios (0)").click()
    types(page, Save_what_is_turned="Half price")
    presses(page, "Save it")
    shows(page, f"Half price is saved, by {ADA}.")
    assert house.entered(SCENARIO) == [f"Half price by {ADA}"]
    joe = house.arrives(JOE, "breakeven")
    joe.get_by_text("Saved scenarios (1)").click()
    expect(joe.get_by_role("button", name="Save it")).to_have_count(0)
    link = joe.get_by_role("link", name="Half price").get_attribute("href")
    joe.goto(f"{house.address}/{link}")
    expect(joe.get_by_label("GPU rate, USD an hour")).to_have_value("0.200")


@pytest.mark.long
def test_who_may_no_longer_does_no_more(house) -> None:
    """Between the question and yes somebody took the role away, and the way in after it."""
    page = house.arrives(FAY, "rates")
    types(page, USD_an_hour_of_one_GPU="0.91", Where_the_rate_comes_from="a letter")
    presses(page, "Enter it")
    shows(page, "Yes, enter it")
    says, before = house.access.read_text(), house.entered(RATE)
    house.access.write_text(says.replace('role = "finance"', 'role = "viewer"'))
    presses(page, "Yes, enter it")
    shows(page, "Not for you to see")
    expect(page.get_by_role("button", name="Enter it")).to_have_count(0)
    house.access.write_text(says.replace(FAY, "fey@example.com"))
    page.reload()
    shows(page, f"{FAY} has no role here")
    house.access.write_text(says)
    assert house.entered(RATE) == before


@pytest.mark.long
@pytest.mark.parametrize(("name", "path", "said"), [
    (JOE, "rates", "is not for a viewer"), (JOE, "audit", "is not for a viewer"),
    (EVE, "breakeven", "is not for a viewer of search"), (EVE, "budgets", "for a viewer of search"),
])  # fmt: skip
def test_others_are_told_that_a_page_is_not_theirs(house, name: str, path: str, said: str) -> None:
    page = house.arrives(name, path)
    shows(page, said)
    expect(page.get_by_text("As of ")).to_have_count(0)
