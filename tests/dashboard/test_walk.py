"""People change things in a real browser, over a real gateway: by name, once, and while they may.

Each signs in at a provider as one does. What is typed wrong is said beside its field; what another
tab or another person did meanwhile is told, and nothing is done twice.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from signed_house import (
    ADA,
    EVE,
    FAY,
    JOE,
    LIMIT_MS,
    House,
    gives,
    goes,
    open_house,
    presses,
    shows,
    types,
)

from ledger.manual_entries import CURRENCY, RATE, SCENARIO
from ledger.prices.stored import load_price_book

BILL = b"date,item,amount\n2026-11-02,claude-haiku-4-5,3.00\n"
PRICES = b"name,input_usd_per_million,output_usd_per_million,source,source_date\n"


@pytest.fixture(scope="module")
def house(books, serving, chromium, tmp_path_factory) -> Iterator[House]:
    gateway = serving(books(days=3, peak=3.0).url)
    with open_house(gateway, chromium, tmp_path_factory.mktemp("house")) as found:
        yield found


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
    types(page, USD_an_hour_of_one_GPU="0.75", Source_of_the_change="contract 2026-18")
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
        ("no.csv", b"date,item,amount\nyesterday,x,1\n", "is not an invoice that can be read"),
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
    types(page, USD_an_hour_of_one_GPU="0.91", Source_of_the_change="a letter")
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
