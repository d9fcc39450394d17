"""axe-core finds nothing serious on any page: by contrast, names, roles and structure.

At the size of a small laptop and of a phone; the first page in the dark, too. To open a page costs
a browser three seconds of work, to turn to it one.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from shown_dashboards import Dashboards

from dashboard.navigation import PLACES
from deploy import parts

LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
NAMES = [place.module.__name__.rpartition(".")[2] for place in PLACES]
TITLES = {name: place.title for name, place in zip(NAMES, PLACES, strict=True)}
ANSWERING = ("answer", "breakeven", "plan")  # whose verdict must be seen at once
ON_PHONES = ("spend", "budgets")  # and those
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
PATIENCE_MS = 60_000
DRAWN = """() => {
  const ends = [...document.querySelectorAll('[data-testid=stCaptionContainer]')];
  const idle = document.querySelector('[data-test-script-state=notRunning]');
  return !!idle && ends.every(end => getComputedStyle(end).opacity === '1')
    && ends.some(end => end.innerText.startsWith('As of '))
    && !document.querySelector('[data-stale=true]');
}"""
JUDGE = """async () => {
  const found = await axe.run(document, {resultTypes: ['violations']});
  return found.violations.map(it => ({
    impact: it.impact, id: it.id, nodes: it.nodes.map(node => node.html.slice(0, 160)),
  }));
}"""
FAULTY = """() => {
  const picture = document.createElement('img');
  picture.id = 'faulty'; picture.src = 'data:,';
  document.querySelector('[data-testid=stMain]').append(picture);
}"""
MENDED = "() => document.getElementById('faulty').remove()"


@pytest.fixture(scope="module")
def axe(pytestconfig: pytest.Config) -> str:
    folder = parts.by_name("axe").find()
    assert folder is not None
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, month) -> Iterator[str]:
    dashboards = Dashboards(tmp_path_factory)
    yield dashboards(month.url)
    dashboards.stop()


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


def opened(browser: Browser, url: str, size: Any, *, dark: bool = False) -> Page:
    scheme: Any = "dark" if dark else "light"
    page = browser.new_page(viewport=size, reduced_motion="reduce", color_scheme=scheme)
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{url}?live=false")
    page.wait_for_function(DRAWN)
    return page


@pytest.fixture(scope="module")
def laptop(browser: Browser, address: str) -> Iterator[Page]:
    page = opened(browser, f"{address}/", LAPTOP)
    yield page
    page.close()


@pytest.fixture(scope="module")
def shown(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    """A page, drawn: on a laptop somebody turned to it, on a phone it was opened at its address."""
    name, size = request.param
    if size is LAPTOP:
        page = request.getfixturevalue("laptop")
        page.get_by_test_id("stSidebarNav").get_by_text(TITLES[name], exact=True).click()
        named = re.compile(f"^{TITLES[name]}")  # "Verdict on own GPUs" follows "Verdict"
        expect(page.get_by_role("heading", level=1, name=named)).to_be_visible()
        page.wait_for_function(DRAWN)
        yield page
        return
    page = opened(browser, f"{address}/{'' if name == NAMES[0] else name}", size)
    yield page
    page.close()


def serious(page: Page, axe: str) -> list[dict[str, Any]]:
    page.evaluate(axe)
    found = page.evaluate(JUDGE)
    return [item for item in found if item["impact"] in ("serious", "critical")]


# Each is drawn once for all that is asked of it: those of both questions come first.
FOLDED = [
    pytest.param((name, size), id=f"{name}{suffix}")
    for size, suffix in ((LAPTOP, ""), (PHONE, "-phone"))
    for name in ANSWERING
]
OTHERS = [
    *(pytest.param((name, LAPTOP), id=name) for name in NAMES if name not in ANSWERING),
    *(pytest.param((name, PHONE), id=f"{name}-phone") for name in ON_PHONES),
]


@pytest.mark.parametrize("shown", FOLDED, indirect=True)
def test_the_verdict_and_its_reason_stand_above_the_fold(shown) -> None:
    """On a small laptop and on a phone, without scrolling."""
    box, size = shown.locator(".be-answer").first.bounding_box(), shown.viewport_size
    assert box is not None
    assert box["y"] + box["height"] <= size["height"]


@pytest.mark.part("axe")
@pytest.mark.parametrize("shown", [*FOLDED, *OTHERS], indirect=True)
def test_no_page_has_a_serious_finding(shown, axe) -> None:
    assert serious(shown, axe) == []


@pytest.mark.part("axe")
def test_the_first_page_in_the_dark_has_none_either(browser, address, axe) -> None:
    page = opened(browser, f"{address}/", LAPTOP, dark=True)
    assert serious(page, axe) == []
    page.close()


@pytest.mark.part("axe")
@pytest.mark.parametrize("shown", [pytest.param(("terms", LAPTOP), id="terms")], indirect=True)
def test_control_a_picture_without_words_is_found(shown, axe) -> None:
    shown.evaluate(FAULTY)
    found = serious(shown, axe)
    shown.evaluate(MENDED)
    assert [item["id"] for item in found] == ["image-alt"]
