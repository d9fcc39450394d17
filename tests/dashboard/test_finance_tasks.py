"""What a person of finance does by clicking, in a browser, signed in over a gateway.

The tasks are those of a house's month: a period, a day that cost more, a filter, rows behind a
figure, showback, the cost of a ticket, the verdict and what would change it, a budget, an anomaly.
"""

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from signed_house import FAY, House, gives, open_house, presses, shows, types
from sqlalchemy import text

from ledger.manual_entries import BUDGET, MUTE

SIZES = {"laptop": (1366, 768)}
DRAWN = """() => {
  const ends = [...document.querySelectorAll('[data-testid=stCaptionContainer]')];
  return !!document.querySelector('[data-test-script-state=notRunning]')
    && ends.some(end => end.innerText.startsWith('As of '))
    && !document.querySelector('[data-stale=true]');
}"""
BURST_DAYS = 4  # ago: one team's API answers of that day cost as no other day's


@pytest.fixture(scope="module")
def house(books, serving, chromium: Path, tmp_path_factory) -> Iterator[House]:
    filled = books(days=30, peak=3.0)
    gateway = serving(filled.url)
    day_us = 86_400 * 10**6
    start_us = filled.now_us // day_us * day_us - BURST_DAYS * day_us
    with gateway.engine.begin() as connection:
        found = connection.execute(
            text(
                "UPDATE attempts SET cost_pusd = 4000000000000 WHERE backend = 'api' AND "
                "opened_us >= :since AND opened_us < :until AND cost_pusd IS NOT NULL"
            ),
            {"since": start_us, "until": start_us + day_us},
        )
        assert found.rowcount > 0, "the burst"
    with open_house(gateway, chromium, tmp_path_factory.mktemp("house")) as opened:
        yield opened


@pytest.fixture(scope="module", params=SIZES)
def seen(request: pytest.FixtureRequest, house: House) -> Iterator[Page]:
    """A page of somebody of finance who has signed in, at one of the sizes."""
    width, height = SIZES[request.param]
    page = house.arrives(FAY, size={"width": width, "height": height})
    drawn(page)
    yield page
    page.context.close()


def turns(page: Page, house: House, path: str, **choices: str) -> None:
    """To a page as a link leads there, and until it is drawn."""
    asked = "&".join(f"{name}={value}" for name, value in {"live": "false", **choices}.items())
    page.goto(f"{house.address}/{path}?{asked}")
    drawn(page)


def drawn(page: Page) -> None:
    page.wait_for_function(DRAWN)


def clicks(page: Page, place: int, across: float, *, y: float) -> None:
    """On a bar of a chart, once the chart is drawn: `across` its width, `y` pixels down."""
    chart = page.get_by_test_id("stVegaLiteChart").nth(place)
    chart.scroll_into_view_if_needed()
    chart.locator("canvas, svg").first.wait_for()
    page.wait_for_timeout(300)  # its first drawing is another one's by a frame
    box = chart.bounding_box()
    assert box is not None
    chart.click(position={"x": box["width"] * across, "y": y})


def chip(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(f"{name}: "))


def sidebar(page: Page) -> Locator:
    """The sidebar, which a phone keeps folded."""
    opener = page.get_by_test_id("stExpandSidebarButton")
    if opener.count() and opener.is_visible():
        opener.click()
    return page.get_by_test_id("stSidebar")


def chooses(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).first.click()
    page.get_by_role("option", name=option, exact=True).first.click()
    drawn(page)


def no_sideways_scroll(page: Page) -> None:
    found = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert found <= 0


@pytest.mark.long
def test_a_period_is_chosen_kept_in_the_address_and_taken_back(seen, house) -> None:
    turns(seen, house, "spend")
    sidebar(seen).get_by_text("month", exact=True).click()
    expect(seen).to_have_url(re.compile("period=month"))
    turns(seen, house, "spend", period="month")
    expect(chip(seen, "period")).to_be_visible()
    no_sideways_scroll(seen)
    chip(seen, "period").click()
    expect(chip(seen, "period")).to_have_count(0)


@pytest.mark.long
def test_a_day_leads_to_its_hours_and_to_its_requests(seen, house) -> None:
    turns(seen, house, "spend")
    clicks(seen, 0, 0.6, y=0.75 * 360)
    expect(chip(seen, "period")).to_be_visible()
    drawn(seen)
    shows(seen, "By team, key, model and backend")
    chooses(seen, "model", "chat-large")
    expect(chip(seen, "model")).to_be_visible()
    shows(seen, "newest first")
    no_sideways_scroll(seen)
    chip(seen, "model").click()
    expect(chip(seen, "model")).to_have_count(0)
    chip(seen, "period").click()
    expect(chip(seen, "period")).to_have_count(0)


@pytest.mark.long
def test_a_click_on_a_bar_narrows_to_its_team(seen, house) -> None:
    turns(seen, house, "spend")
    clicks(seen, 1, 0.3, y=56.0)
    expect(chip(seen, "team")).to_be_visible()
    chip(seen, "team").click()
    expect(chip(seen, "team")).to_have_count(0)


@pytest.mark.long
def test_a_figure_leads_to_exactly_its_rows(seen, house) -> None:
    turns(seen, house, "spend", period="7+d")
    told = seen.get_by_text(re.compile(r"Of this period: [\d,]+ attempts")).first.inner_text()
    count = int(re.search(r"Of this period: ([\d,]+)", told).group(1).replace(",", ""))
    with seen.expect_download() as download:
        seen.get_by_role("button", name="Attempts, CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert len(rows) == count > 0


@pytest.mark.long
def test_idle_time_is_shared_over_teams(seen, house) -> None:
    turns(seen, house, "spend")
    chooses(seen, "Idle time", "shared by use")
    shows(seen, "and their part of idle time")


@pytest.mark.long
def test_the_cost_of_a_ticket_is_told(seen, house) -> None:
    turns(seen, house, "spend")
    today = datetime.now(UTC).date()
    lines = [f"{today - timedelta(days=day)},{100 + day}," for day in range(2, 9)]
    field = seen.get_by_test_id("stFileUploader")
    field.scroll_into_view_if_needed()
    gives(seen, "tickets.csv", "\n".join(["day,value,team", *lines]).encode())
    shows(seen, "Whole days of this period alone")
    no_sideways_scroll(seen)


@pytest.mark.long
def test_the_sentence_leads_to_its_options_and_to_what_if(seen, house) -> None:
    turns(seen, house, "")
    sentence = seen.locator(".be-answer .a").first
    expect(sentence).to_have_text(re.compile("^(Keep|Reduce|Add|Leave)"))
    box = sentence.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= seen.viewport_size["height"], "above the fold"
    shows(seen, "Options, cost a month")
    before = sentence.inner_text()
    sidebar(seen).get_by_test_id("stSidebarNav").get_by_text("Break-even", exact=True).click()
    drawn(seen)
    expect(seen.locator(".be-answer .a").first).to_have_text(before)
    types(seen, GPU_rate="0.01")
    expect(seen.locator(".be-answer .a")).to_have_count(2)
    expect(seen.locator(".be-answer .a").first).to_have_text(before)
    no_sideways_scroll(seen)


@pytest.mark.long
def test_a_budget_is_entered_and_ended(seen, house) -> None:
    turns(seen, house, "budgets")
    types(seen, **{"Who_or_what_it_limits": "team:search", "Limit,_USD": "750"})
    presses(seen, "Enter it")
    shows(seen, "+team:search: $750.00 a month, hard stop")
    presses(seen, "Yes, enter it")
    shows(seen, f"The budget team:search@month is entered, by {FAY}.")
    assert f"team:search@month by {FAY}" in house.entered(BUDGET)
    no_sideways_scroll(seen)
    chooses(seen, "Budget", "team:search@month")
    presses(seen, "End it")
    presses(seen, "Yes, end it")
    shows(seen, f"The budget team:search@month is ended, by {FAY}.")


@pytest.mark.long
def test_an_anomaly_is_muted_and_heard_again(seen, house) -> None:
    turns(seen, house, "spend")
    shows(seen, "Far above their usual day")
    muter = "Mute or unmute a series"
    chooses(seen, muter, "search")
    presses(seen, "Mute")
    shows(seen, "team search is muted", f"Muted: search, by {FAY}")
    assert house.entered(MUTE)[0] == f"team/search by {FAY}"
    chooses(seen, muter, "search")
    presses(seen, "Unmute")
    shows(seen, "team search is not muted any more")
