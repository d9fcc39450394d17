"""The whole dashboard in a real browser: every page, no exception, no request beyond this machine.

`make screenshots` leaves pictures of all pages in `build/screenshots`, for a person to look at.
"""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    expect,
    sync_playwright,
)
from shown_dashboards import Dashboards
from sqlalchemy import create_engine, delete, insert, text, update

from dashboard.navigation import PLACES
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.windows import window_at
from ledger.database import make_engine
from ledger.declared import declare
from ledger.invoices import books as invoices
from ledger.invoices.files import parse
from ledger.money import pusd_to_usd
from ledger.orm import tables as orm
from ledger.seals.audit_log import AuditLog
from ledger.verify.checks import verify
from ledger.verify.results import record_verification

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "build" / "screenshots"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
NAMES = [place.module.__name__.rpartition(".")[2] for place in PLACES]
PATHS = {name: "" if place.default else name for name, place in zip(NAMES, PLACES, strict=True)}
TITLES = {name: place.title for name, place in zip(NAMES, PLACES, strict=True)}
BROKEN = """() => [...document.querySelectorAll('.be-rows td:first-child')].flatMap(cell => {
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    for (const word of node.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(one => one.top)).size > 1) broken.push(word[0]);
    }
  return broken;
})"""
# The text of a page that no script draws now, and of which nothing stays pale: that is not read.
# Streamlit draws a page twice when it is opened, and while it does so cards are gone.
WHOLE_TEXT = """() => {
  const ends = [...document.querySelectorAll('[data-testid=stCaptionContainer]')];
  const idle = document.querySelector('[data-test-script-state=notRunning]');
  return !!idle && ends.every(end => getComputedStyle(end).opacity === '1')
    && ends.some(end => end.innerText.startsWith('As of ')) && document.body.innerText;
}"""
FORGET = "() => { localStorage.clear(); sessionStorage.clear(); }"
PATIENCE_MS = 60_000  # with a browser on a machine that does much else
USD = 10**12
NOISE = (
    # Opened at a page's own address, Streamlit's client tries that as its server's root first.
    re.compile(rf"status of 404 .*/({'|'.join(NAMES)})/_stcore/"),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboards]:
    """Start the dashboard the way people do: `served(ledger's URL)` is its address."""
    dashboards = Dashboards(tmp_path_factory)
    yield dashboards
    dashboards.stop()


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """What all pages share: a megabyte of scripts is compiled once, and nothing moves."""
    screen = {"width": 1440, "height": 1000}
    with browser.new_context(viewport=screen, reduced_motion="reduce") as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context


@pytest.fixture
def faults() -> list[str]:
    """What a browser complained of: requests beyond this machine, errors of its scripts."""
    return []


@pytest.fixture
def browser_page(context: BrowserContext, faults: list[str]) -> Iterator[Page]:
    """A fresh page that knows of no other; a test that leaves `faults` behind fails."""
    page = context.new_page()
    page.on("request", lambda target: faults.append(target.url) if _beyond(target.url) else None)
    page.on("console", lambda target: faults.append(_said(target)) if _is_error(target) else None)
    page.on("pageerror", lambda target: faults.append(str(target)))
    yield page
    page.evaluate(FORGET)
    context.clear_cookies()
    page.close()
    assert faults == []


def _said(message: ConsoleMessage) -> str:
    return f"{message.text} ({message.location['url']})"


def _is_error(message: ConsoleMessage) -> bool:
    return message.type == "error" and not any(item.search(_said(message)) for item in NOISE)


def _beyond(url: str) -> bool:
    return not re.match(r"(https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:", url)


def open_page(page: Page, address: str, path: str) -> str:
    """Wait until the page has drawn all of itself; its visible text."""
    page.goto(f"{address}/{path}")
    return read_page(page)


def turn_to(page: Page, title: str) -> str:
    """Go on to another page as people do, whose scripts are loaded by now; its visible text."""
    page.get_by_test_id("stSidebarNav").get_by_text(title, exact=True).click()
    named = re.compile(f"^{title}")  # "Verdict on own GPUs" follows "Verdict"
    expect(page.get_by_role("heading", level=1, name=named)).to_be_visible()
    return read_page(page)


def read_page(page: Page) -> str:
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    until_s = time.monotonic() + PATIENCE_MS / 1000
    while not (words := page.evaluate(WHOLE_TEXT)):
        assert time.monotonic() < until_s, page.locator("body").inner_text()
        page.wait_for_timeout(50)
    assert page.get_by_test_id("stException").count() == 0
    assert "Traceback" not in words
    return words


def sql(url: str, statement: str) -> int:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(text(statement)).scalar_one()
    engine.dispose()
    return int(found)


def test_every_page_in_a_real_browser(served, browser_page: Page, books) -> None:
    filled = books(peak=40.0, days=29)  # of 30 days the first leave while a clock hour ends
    address = served(filled.url)
    browser_page.set_viewport_size({"width": 1440, "height": 3000})  # charts far below are drawn
    seen = {}
    seen["engines"] = open_page(browser_page, address, PATHS["engines"])  # samples grow old
    for name, title in TITLES.items():
        if name != "engines":
            seen[name] = turn_to(browser_page, title)
    own = sum(first.backend == "own" for first in filled.opened)
    assert f"{own:,} requests" in seen["routing"]
    api = sql(filled.url, "SELECT sum(cost_pusd) FROM attempts WHERE backend = 'api'")
    assert f"${api / 1e12:.2f}" in seen["spend"]
    assert f"${api / 1e12:.2f}" in seen["answer"]
    journal = sum(
        last.cost_pusd or 0 for first, last in filled.pairs if first.backend == "api"
    )  # fmt: skip
    assert journal == api
    assert "anthropic/claude-haiku-4-5" in seen["breakeven"]
    assert re.search("healthy|last sampled", seen["engines"])  # as fast as this machine came here


FIRST_S = 1_789_999_200
EXPORT = (
    "start_time,end_time,num_model_requests,model,batch,input_tokens,output_tokens\n"
    + "".join(
        f"{FIRST_S + 3600 * n},{FIRST_S + 3600 * (n + 1)},900,gpt-4o-mini,false,9000000,900000\n"
        for n in range(48)
    )
)


def test_who_owns_no_gpu_sees_break_even_from_an_export(
    served, browser_page: Page, month, tmp_path
) -> None:
    """9.9M tokens an hour at $0.15 and $0.60 for a million: $1.89 an hour at the API."""
    open_page(browser_page, served(month.url), "plan")
    browser_page.get_by_text("a provider's usage export", exact=True).click()
    file = {"name": "usage.csv", "mimeType": "text/csv", "buffer": EXPORT.encode()}
    browser_page.get_by_test_id("stFileUploader").locator("input").set_input_files([file])
    figures = browser_page.locator(".be-mid")  # a chart's note may repeat them
    expect(figures.get_by_text("7.23B", exact=True)).to_be_visible()
    expect(figures.get_by_text("$1,380", exact=True)).to_be_visible()
    browser_page.get_by_role("combobox", name="GPU", exact=True).click()
    browser_page.get_by_role("option", name="H100").click()
    expect(
        browser_page.get_by_text("A month of one H100 at $6.98 an hour, with ops")
    ).to_be_visible()
    with browser_page.expect_download() as kept:
        browser_page.get_by_text("Report to print (HTML)").click()
    kept.value.save_as(tmp_path / "plan.html")
    assert "7.23B tokens a month" in (tmp_path / "plan.html").read_text()


def test_the_answer_is_there_without_a_click(served, browser_page: Page, month) -> None:
    """Within the first screen of a laptop, in words and dollars: a second GPU has nothing to do."""
    browser_page.set_viewport_size({"width": 1366, "height": 768})
    open_page(browser_page, served(month.url), "")
    ops, gpu = 720 / 168 * 10, 720 * 0.4  # as contracted, for a month of 720 hours
    answer = browser_page.locator(".be-answer")
    said = re.search(
        r"Keep 1 GPU, worth \$([0-9.]+) a month\s+because 1 GPU and its overflow cost \$([0-9.]+) "
        rf"and the next best, 2 GPUs, cost \${gpu * 2 + ops:.2f}\.",
        answer.inner_text(),
    )
    assert said is not None, answer.inner_text()
    worth, kept = map(float, said.groups())
    assert gpu + ops < kept < gpu * 2 + ops
    assert worth + kept == pytest.approx(gpu * 2 + ops, abs=0.015)  # each rounded to cents
    box = answer.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 768


def test_choices_outlive_a_change_of_page_and_a_reload(served, browser_page: Page, month) -> None:
    """They stand in the address, so that a view can be shared. In any week every team asks."""
    address = served(month.url)
    open_page(browser_page, address, "")
    browser_page.get_by_role("radio", name="7 d").click()
    browser_page.get_by_role("combobox", name="Team").click()
    browser_page.get_by_role("option", name="search").click()
    browser_page.get_by_text("Refresh by itself").click()
    expect(browser_page.get_by_text("Below: team search alone")).to_be_visible()
    expect(browser_page).to_have_url(re.compile("live="))  # what a page change keeps
    for name in ("Break-even", "Spend"):
        browser_page.get_by_test_id("stSidebarNav").get_by_text(name, exact=True).click()
        expect(browser_page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        chosen_as_before(browser_page)
        if name == "Break-even":
            expect(browser_page.get_by_text("Of all teams: own GPUs break even")).to_be_visible()
    browser_page.reload()
    chosen_as_before(browser_page)


def chosen_as_before(page: Page) -> None:
    expect(page.get_by_role("radio", name="7 d")).to_be_checked()
    expect(page.get_by_label("Team", exact=True)).to_have_value("search")
    expect(page.get_by_role("switch", name="Refresh by itself")).not_to_be_checked()


def test_a_shared_address_opens_as_it_was_sent(served, browser_page: Page, month) -> None:
    address = served(month.url)
    words = open_page(browser_page, address, "?period=7+d&team=finance")
    assert "All teams, own GPUs" in words
    expect(browser_page.get_by_role("radio", name="7 d")).to_be_checked()
    words = open_page(
        browser_page, address, "breakeven?scenario=Dearer+GPUs&x-rate=0.8&x-volume=50"
    )
    assert "Dearer GPUs (pool llama-70b)" in words
    expect(browser_page.get_by_label("GPU rate, USD an hour")).to_have_value("0.800")


def plan_field(page: Page, label: str) -> Locator:
    return page.get_by_test_id("stNumberInput").filter(has_text=label).locator("input")


def test_a_shared_plan_has_its_speed_and_its_duty(served, browser_page: Page, month) -> None:
    """A saved plan is its address: it went without both, and another plan was opened."""
    open_page(browser_page, served(month.url), "plan")
    expect(plan_field(browser_page, "Hours in use, % of that speed")).to_have_value(
        "40.00"
    )  # by the day
    for label, typed in (
        ("Tokens a second of one GPU", "1234"),
        ("Hours in use, % of that speed", "35"),
    ):
        plan_field(browser_page, label).fill(typed)
        plan_field(browser_page, label).press("Enter")
    expect(browser_page).to_have_url(re.compile("speed-.*duty-|duty-.*speed-"))
    shared = browser_page.url
    browser_page.goto("about:blank")
    browser_page.goto(shared)
    expect(browser_page.get_by_text(re.compile("^As of "))).to_be_visible()
    expect(plan_field(browser_page, "Tokens a second of one GPU")).to_have_value("1234")
    expect(plan_field(browser_page, "Hours in use, % of that speed")).to_have_value("35.00")


ACROSS = """() => {const one = document.querySelector('[data-testid=stMain]');
  return one.scrollWidth - one.clientWidth;}"""


def test_a_long_name_is_no_wider_than_the_page(served, browser_page: Page, books) -> None:
    """One word of two hundred letters pushed the figures beside it off the screen."""
    name = "team-" + "x" * 200
    filled = books(days=1, peak=2.0, teams=(name,))
    engine = make_engine(filled.url)
    budget = BudgetSpec(f"team:{name}", "month", USD, hard=True, timezone="UTC")
    declare(engine, contracts=(), budgets=[budget], config=("c", "c"), at_us=filled.now_us)
    engine.dispose()
    address = served(filled.url)
    for width in (390, 1366):
        browser_page.set_viewport_size({"width": width, "height": 800})
        for path in ("?live=false", f"?live=false&team={name}"):
            open_page(browser_page, address, path)
            assert browser_page.evaluate(ACROSS) <= 0, (width, path[:20])


def test_no_word_of_a_card_is_broken_beside_a_long_one(served, browser_page: Page, books) -> None:
    """What a rate rests on is a sentence; on a phone it left its name a letter or two a line."""
    filled = books(days=1, peak=2.0)
    engine = make_engine(filled.url)
    source = (
        f"as listed in March by prices.example/{'articles/' * 4}; another page lists another price"
    )
    with engine.begin() as connection:
        connection.execute(update(orm.GpuContractRow).values(source=source))
    engine.dispose()
    browser_page.set_viewport_size({"width": 390, "height": 800})
    open_page(browser_page, served(filled.url), "rates?live=false")
    assert browser_page.evaluate(BROKEN) == []
    assert browser_page.evaluate(ACROSS) <= 0


SLOW = """
import importlib.abc, pathlib, runpy, sys, time
GATES = pathlib.Path({gates!r})

def wait(gate):
    while not (GATES / gate).exists():
        time.sleep(0.02)

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "altair":
            wait("imports")

if not any(isinstance(one, Slow) for one in sys.meta_path):
    sys.meta_path.insert(0, Slow())
    import ledger.reports.survey
    real = ledger.reports.survey.survey
    def survey(*args, **options):
        wait("reads")
        return real(*args, **options)
    ledger.reports.survey.survey = survey
runpy.run_path({app!r}, run_name="__main__")
"""


def test_something_is_on_the_screen_while_it_loads_and_while_it_reads(
    served, browser_page: Page, month, tmp_path
) -> None:
    """Held at two gates: a first look was a blank page until all was there."""
    script = tmp_path / "slow.py"
    app = str(ROOT / "dashboard" / "app.py")
    script.write_text(SLOW.format(gates=str(tmp_path), app=app))
    browser_page.goto(served(month.url, script, warm=False))
    expect(browser_page.get_by_text("Opening the books ...")).to_be_visible()
    (tmp_path / "imports").touch()
    expect(browser_page.get_by_text("Verdict on own GPUs")).to_be_visible()
    expect(browser_page.get_by_text("Reading the ledger ...")).to_be_visible()
    expect(browser_page.get_by_text("Opening the books ...")).to_have_count(0)
    (tmp_path / "reads").touch()
    expect(browser_page.get_by_text(re.compile("^As of "))).to_be_visible()
    expect(browser_page.get_by_text("Reading the ledger ...")).to_have_count(0)


CANCELLED = """
import pathlib, runpy
from dashboard import admin_client
from dashboard.viewer import Viewer
from ledger.identity.people import DashboardRole

GONE = pathlib.Path({gone!r})
SET = dict(set=0, since=None, by="x", note=None, version="v0", policies="policies: []", fault=None)

class Desk:
    viewer = Viewer(None, DashboardRole.ADMIN)

    def get(self, path, **query):
        if path != "/policies/simulate":
            return dict(SET, data=[])
        now = dict(doing="plays this set", done=5, of=10)
        ended = dict(state="cancelled", fault="somebody cancelled it")
        return ended if GONE.exists() else dict(state="running", progress=now)

    def post(self, path, **given):
        return dict(job="j", valid=True, faults=[], policies=[], version="v0", changes=[])

    def delete(self, path, **query):
        GONE.touch()

admin_client.desk = lambda who: Desk()
runpy.run_path({app!r}, run_name="__main__")
"""


def test_a_running_what_if_hears_that_somebody_cancels_it(
    served, browser_page: Page, month, tmp_path
) -> None:
    """Only a browser shows it: a press that a script's own loop keeps waiting is never heard."""
    script, app = tmp_path / "cancelled.py", str(ROOT / "dashboard" / "app.py")
    script.write_text(CANCELLED.format(gone=str(tmp_path / "gone"), app=app))
    browser_page.goto(f"{served(month.url, script)}/policies")
    browser_page.get_by_role("button", name="What would it have done?").click()
    expect(browser_page.get_by_text("5 of 10 requests: plays this set ...")).to_be_visible()
    browser_page.get_by_role("button", name="Cancel it").click()
    expect(browser_page.get_by_text("No figures: somebody cancelled it.")).to_be_visible()


def test_a_missing_ledger_is_a_friendly_sentence(served, browser_page: Page, tmp_path) -> None:
    address = served(f"sqlite:///{tmp_path / 'none.db'}")
    browser_page.goto(address)
    sentence = browser_page.get_by_text(re.compile("The ledger cannot be read"))
    expect(sentence).to_be_visible()
    assert browser_page.get_by_test_id("stException").count() == 0


BROKEN_CHART = """
import altair as alt
import streamlit as st
data = alt.InlineData(values=[{"a": 1}])
chart = alt.Chart(data).mark_point().encode(x=alt.X("a:Q", axis=alt.Axis(labelExpr="no((")))
st.altair_chart(chart)
st.caption("As of now")
"""


def test_a_chart_that_the_browser_cannot_draw_is_a_fault(
    served, browser_page: Page, faults: list[str], tmp_path
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN_CHART)
    browser_page.goto(served(None, tmp_path / "broken.py"))
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not faults and time.monotonic() < deadline:
        browser_page.wait_for_timeout(100)
    assert any("Expression parse error" in fault for fault in faults)
    faults.clear()


TALLEST = 7000  # pixels of a picture
STILL = 3  # looks in a row at which a page has not grown: what comes late must be on it
SIZES = ((1920, 1080), (1366, 768), (390, 844))
SHOWN = ROOT / "build" / "screenshots.json"
DRAWN = (
    "[...document.querySelectorAll('[data-testid=stVegaLiteChart]')]"
    ".filter(one => one.offsetParent)"  # what is in a closed tab waits until it is opened
    ".every(one => one.querySelector('canvas, svg'))"
)
HEADLINE = ".be-answer .a, .be-big, .be-mid"


def looked_at(filled) -> None:
    """What only people bring into books: a bill, its posting, a verification, the changes."""
    engine = make_engine(filled.url)
    sums: dict[str, int] = {}
    for first, last in filled.pairs:
        if first.provider == "anthropic":
            day = datetime.fromtimestamp(last.settled_us / 1e6, tz=UTC).date().isoformat()
            sums[day] = sums.get(day, 0) + (last.cost_pusd or 0)
    lines = ["date,item,amount"]
    for n, (day, pusd) in enumerate(sorted(sums.items())):
        billed = pusd if n % 5 else pusd * 103 // 100
        lines.append(f"{day},claude-haiku-4-5,{pusd_to_usd(billed):f}")
    bill = parse("\n".join(lines))
    invoices.store(engine, bill, party="provider:anthropic", name="november.csv", by="ada",
                   at_us=filled.now_us)  # fmt: skip
    with engine.connect() as connection:
        result = verify(connection)
    record_verification(engine, result, actor="ada", at_us=filled.now_us)
    _limited(engine, filled)
    AuditLog(engine).follow(at_us=filled.now_us)
    engine.dispose()


def _limited(engine, filled) -> None:
    """Of this month: one with nothing left, one that will be over, a calm one, a default."""
    budgets = [BudgetSpec(f"team:{name}", "month", 30 * USD, hard=name == "search", timezone="UTC")
               for name in ("search", "support", "coding")]  # fmt: skip
    budgets.append(BudgetSpec("user:*", "month", 5 * USD, hard=False, timezone="UTC"))
    declare(engine, contracts=(), budgets=budgets, config=("c", "c"), at_us=filled.now_us)
    window = window_at("month", "UTC", filled.now_us // 10**6)
    passed = (filled.now_us // 10**6 - window.start_s) / (window.end_s - window.start_s)
    spent = {"team:search@month": 31.5, "team:support@month": 36 * passed,
             "team:coding@month": 12 * passed, "user:ann@month": 2 * passed}  # fmt: skip
    rows = [
        {"budget_id": name, "window": window.start_s, "spent_pusd": int(usd * USD),
         "granted_pusd": USD if usd < 30 else 0}
        for name, usd in spent.items()
    ]  # fmt: skip
    with engine.begin() as connection:
        connection.execute(delete(orm.BudgetWindowRow))
        connection.execute(insert(orm.BudgetWindowRow), rows)


def grown(page: Page, width: int, height: int) -> int:
    """Make the window as high as the page, which grows while what came into sight is drawn."""
    seen, still = 0, 0
    while True:
        whole = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        still = still + 1 if whole <= seen else 0
        if still == STILL or seen == TALLEST:
            return int(whole)
        seen = max(seen, height, min(whole + 20, TALLEST))
        page.set_viewport_size({"width": width, "height": seen})
        page.wait_for_timeout(800)
        page.wait_for_function(DRAWN)


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_of_every_page_at_every_size(served, browser: Browser, books, scheme: str) -> None:
    """`make screenshots`: for a person's eye; nothing may stick out of a page at any size."""
    filled = books(peak=40.0, days=20)
    looked_at(filled)
    address = served(filled.url)
    PICTURES.mkdir(parents=True, exist_ok=True)
    told = json.loads(SHOWN.read_text()) if SHOWN.exists() else {}
    wide = []
    for width, height in SIZES:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        page = context.new_page()
        page.set_default_timeout(90_000)
        for name, path in PATHS.items():
            started = time.monotonic()
            open_page(page, address, path)
            drawn = time.monotonic() - started
            page.wait_for_function(DRAWN)
            page.wait_for_timeout(400)  # the layout follows its charts
            kept = f"{name}-{width}x{height}-{scheme}.png"
            whole = grown(page, width, height)
            expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)  # a refresh, half drawn
            over = page.evaluate(
                "(one => one.scrollWidth - one.clientWidth)"
                "(document.querySelector('[data-testid=stMain]'))"
            )
            page.screenshot(path=PICTURES / kept)
            page.set_viewport_size({"width": width, "height": height})
            wide += [kept] if over > 0 else []
            first = page.locator(HEADLINE).first
            item = told.setdefault(name, {"pictures": {}})
            item["figure"] = first.inner_text() if first.count() else None
            item["pictures"][kept] = {"drawn_s": round(drawn, 2), "height": whole}
        context.close()
    SHOWN.write_text(json.dumps(told, indent=2) + "\n")
    assert wide == [], "wider than the screen"
