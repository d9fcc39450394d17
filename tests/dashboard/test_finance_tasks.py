"""What a person of finance does by clicking, in a browser, signed in over a gateway.

The tasks are those of a house's month: a period, a day that cost more, a filter, rows behind a
figure, showback, the cost of a ticket and of a product, the verdict and what would change it, a
rate, a budget, an anomaly. Each is done on a laptop, a phone and a wide screen; muting on a phone
stands for all where time is short.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from signed_house import FAY, House, gives, open_house, presses, shows, types
from sqlalchemy import text as sql_text

from ledger.manual_entries import BUDGET, METRIC, MUTE, VIRTUAL_TAG, enter, standing_entries

SIZES = {"phone": (390, 844), "laptop": (1366, 768), "wide": (1920, 1080)}
DRAWN = """() => {
  const ends = [...document.querySelectorAll('[data-testid=stCaptionContainer]')];
  return !!document.querySelector('[data-test-script-state=notRunning]')
    && ends.some(end => end.innerText.startsWith('As of '))
    && !document.querySelector('[data-stale=true]');
}"""
Task = Callable[[Page, House], None]
GAP = 0.006  # of a chart of a month: more than lies between two bars
BURST_DAYS = 4  # ago: one team's API answers of that day cost as no other day's


@pytest.fixture(scope="module")
def house(books, serving, chromium: Path, tmp_path_factory) -> Iterator[House]:
    filled = books(days=30, peak=3.0)
    gateway = serving(filled.url)
    day_us = 86_400 * 10**6
    start_us = filled.now_us // day_us * day_us - BURST_DAYS * day_us
    with gateway.engine.begin() as connection:
        found = connection.execute(
            sql_text(
                "UPDATE attempts SET cost_pusd = 4000000000000 WHERE backend = 'api' AND "
                "opened_us >= :since AND opened_us < :until AND cost_pusd IS NOT NULL"
            ),
            {"since": start_us, "until": start_us + day_us},
        )
        assert found.rowcount > 0, "the burst"
    with open_house(gateway, chromium, tmp_path_factory.mktemp("house")) as opened:
        yield opened


@pytest.fixture(scope="module")
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
    """On a bar of a chart, once the chart is drawn: `across` its width or next to it, `y` down.

    Where the gaps between bars are follows from the size, and from the hour: it decides how many
    days thirty days touch. Beside a gap a bar tells its figure.
    """
    chart = page.get_by_test_id("stVegaLiteChart").nth(place)
    chart.scroll_into_view_if_needed()
    chart.locator("canvas, svg").first.wait_for()
    page.wait_for_timeout(300)  # its first drawing is another one's by a frame
    box = chart.bounding_box()
    assert box is not None
    for further in range(4):
        spot = {"x": box["width"] * (across + further * GAP), "y": y}
        chart.hover(position=spot)
        with suppress(PlaywrightTimeout):
            page.locator("#vg-tooltip-element.visible").wait_for(timeout=2_000)
            break
    else:
        raise AssertionError("no bar is there")
    chart.click(position=spot)


def chip(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(f"{name}: "))


def sidebar(page: Page) -> Locator:
    """The sidebar, which a phone keeps folded."""
    opener = page.get_by_test_id("stExpandSidebarButton")
    if opener.count() and opener.is_visible():
        opener.click()
    return page.get_by_test_id("stSidebar")


def folds(page: Page) -> None:
    """Take the sidebar off a phone's page; beside a wider one it stays."""
    if page.viewport_size["width"] < page.viewport_size["height"]:
        sidebar(page).hover()
        page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
        expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()


def chooses(page: Page, label: str, option: str) -> None:
    box = page.get_by_role("combobox", name=label).first
    box.scroll_into_view_if_needed()
    listed = page.get_by_role("option", name=option, exact=True).first
    box.click()
    if not listed.is_visible():  # the list closes when the page scrolls to it
        page.keyboard.press("ArrowDown")
    listed.click()
    drawn(page)


def no_sideways_scroll(page: Page) -> None:
    found = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert found <= 0


def a_period_is_chosen_kept_in_the_address_and_taken_back(seen: Page, house: House) -> None:
    turns(seen, house, "spend")
    sidebar(seen).get_by_text("month", exact=True).click()
    expect(seen).to_have_url(re.compile("period=month"))
    turns(seen, house, "spend", period="month")
    folds(seen)
    expect(chip(seen, "period")).to_be_visible()
    no_sideways_scroll(seen)
    chip(seen, "period").click()
    expect(chip(seen, "period")).to_have_count(0)


def a_day_leads_to_its_hours_and_to_its_requests(seen: Page, house: House) -> None:
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


def a_click_on_a_bar_narrows_to_its_team(seen: Page, house: House) -> None:
    turns(seen, house, "spend")
    clicks(seen, 1, 0.3, y=56.0)
    expect(chip(seen, "team")).to_be_visible()
    chip(seen, "team").click()
    expect(chip(seen, "team")).to_have_count(0)


def a_figure_leads_to_exactly_its_rows(seen: Page, house: House) -> None:
    turns(seen, house, "spend", period="7+d")
    told = seen.get_by_text(re.compile(r"Of this period: [\d,]+ attempts")).first.inner_text()
    count = int(re.search(r"Of this period: ([\d,]+)", told).group(1).replace(",", ""))
    with seen.expect_download() as download:
        seen.get_by_role("button", name="Attempts, CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert len(rows) == count > 0


def idle_time_is_shared_over_teams(seen: Page, house: House) -> None:
    turns(seen, house, "spend")
    chooses(seen, "Idle time", "shared by use")
    shows(seen, "and their part of idle time")


def the_cost_of_a_ticket_is_told(seen: Page, house: House) -> None:
    turns(seen, house, "spend")
    today = datetime.now(UTC).date()
    lines = [f"{today - timedelta(days=day)},{100 + day}," for day in range(2, 9)]
    field = seen.get_by_test_id("stFileUploader")
    field.scroll_into_view_if_needed()
    gives(seen, "tickets.csv", "\n".join(["day,value,team", *lines]).encode())
    shows(seen, "Whole days of this period alone")
    no_sideways_scroll(seen)


def the_sentence_leads_to_its_options_and_to_what_if(seen: Page, house: House) -> None:
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
    folds(seen)
    expect(seen.locator(".be-answer .a").first).to_have_text(before)
    types(seen, GPU_rate="0.01")
    expect(seen.locator(".be-answer .a")).to_have_count(2)
    expect(seen.locator(".be-answer .a").first).to_have_text(before)
    no_sideways_scroll(seen)


def a_budget_is_entered_and_ended(seen: Page, house: House) -> None:
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


def an_anomaly_is_muted_and_heard_again(seen: Page, house: House) -> None:
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


def a_rate_moves_every_place_of_the_verdict(seen: Page, house: House) -> None:
    turns(seen, house, "rates")
    cents = 50 + seen.viewport_size["width"] % 49
    types(seen, USD_an_hour_of_one_GPU=f"0.{cents}", Source_of_the_change="contract 2026-19")
    presses(seen, "Enter it")
    no_sideways_scroll(seen)
    presses(seen, "Yes, enter it")
    shows(seen, f"The rate of llama-70b is entered, at once, by {FAY}.")
    for path in ("", "breakeven", "plan"):
        turns(seen, house, path)
        shows(seen, f"$0.{cents} per GPU-hour")


def a_virtual_tag_is_entered_and_divided(seen: Page, house: House) -> None:
    turns(seen, house, "spend")
    seen.get_by_text("Enter, change or withdraw a virtual tag").click()
    for label, text in (("^Name$", "product"), ("^Rules", "work: team=search|support")):
        field = seen.get_by_role("textbox", name=re.compile(label))
        field.fill(text)
        field.press("Tab")
    presses(seen, "Enter the tag")
    shows(seen, "The virtual tag product counts for all requests of the books.")
    assert f"product by {FAY}" in house.entered(VIRTUAL_TAG)
    today = datetime.now(UTC).date()
    lines = [f"{today - timedelta(days=day)},{100 + day},product=work" for day in range(2, 5)]
    gives(seen, "tickets.csv", "\n".join(["day,value,tag", *lines]).encode())
    types(seen, Keep_it_under_the_name="tickets")
    presses(seen, "Keep it")
    shows(seen, "tickets is kept with 3 values.")
    expect(seen.get_by_role("combobox", name="Divide by")).to_be_visible()
    no_sideways_scroll(seen)
    with house.gateway.engine.begin() as connection:  # as the next size finds it
        for kind in (VIRTUAL_TAG, METRIC):
            for name, entry in standing_entries(connection, kind, 2**62).items():
                enter(connection, replace(entry, subject=kind + name, says=None))


TASKS = (
    an_anomaly_is_muted_and_heard_again,  # first: it stands for all where time is short
    a_period_is_chosen_kept_in_the_address_and_taken_back,
    a_day_leads_to_its_hours_and_to_its_requests,
    a_click_on_a_bar_narrows_to_its_team,
    a_figure_leads_to_exactly_its_rows,
    idle_time_is_shared_over_teams,
    the_cost_of_a_ticket_is_told,
    the_sentence_leads_to_its_options_and_to_what_if,
    a_budget_is_entered_and_ended,
    a_virtual_tag_is_entered_and_divided,
    a_rate_moves_every_place_of_the_verdict,
)


@pytest.mark.parametrize(
    ("seen", "task"),
    [
        pytest.param(
            size, task, id=f"{task.__name__}-{size}",
            marks=() if (size, task) == ("phone", TASKS[0]) else pytest.mark.long,
        )
        for size in SIZES
        for task in TASKS
    ],
    indirect=["seen"],
)  # fmt: skip
def test_a_task_is_done_by_clicking(seen: Page, house: House, task: Task) -> None:
    task(seen, house)
