"""axe-core finds nothing serious on any page: by contrast, names, roles and structure.

At the size of a small laptop and of a phone; the first page in the dark, too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from shown_dashboards import Dashboards

from dashboard.navigation import PLACES
from deploy import parts

LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
NAMES = [place.module.__name__.rpartition(".")[2] for place in PLACES]
ON_PHONES = ("answer", "breakeven", "spend", "budgets")
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
  picture.src = 'data:,';
  document.querySelector('[data-testid=stMain]').append(picture);
}"""


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
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


def opened(browser: Browser, url: str, size: dict[str, int], *, dark: bool = False) -> Page:
    scheme: Any = "dark" if dark else "light"
    page = browser.new_page(viewport=size, reduced_motion="reduce", color_scheme=scheme)
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{url}?live=false")
    page.wait_for_function(DRAWN)
    return page


def serious(page: Page, axe: str) -> list[dict[str, Any]]:
    page.evaluate(axe)
    found = page.evaluate(JUDGE)
    return [item for item in found if item["impact"] in ("serious", "critical")]


@pytest.mark.part("axe")
@pytest.mark.parametrize(
    ("name", "size"),
    [
        *[pytest.param(name, LAPTOP, id=name) for name in NAMES],
        *[pytest.param(name, PHONE, id=f"{name}-phone") for name in ON_PHONES],
    ],
)
def test_no_page_has_a_serious_finding(browser, address, axe, name, size) -> None:
    page = opened(browser, f"{address}/{'' if name == 'answer' else name}", size)
    assert serious(page, axe) == []
    page.close()


@pytest.mark.part("axe")
def test_the_first_page_in_the_dark_has_none_either(browser, address, axe) -> None:
    page = opened(browser, f"{address}/", LAPTOP, dark=True)
    assert serious(page, axe) == []
    page.close()


@pytest.mark.part("axe")
def test_control_a_picture_without_words_is_found(browser, address, axe) -> None:
    page = opened(browser, f"{address}/terms", LAPTOP)
    page.evaluate(FAULTY)
    assert [item["id"] for item in serious(page, axe)] == ["image-alt"]
    page.close()


def test_the_verdict_and_its_reason_stand_above_the_fold(browser, address) -> None:
    """On a small laptop and on a phone, without scrolling."""
    for size in (LAPTOP, PHONE):
        for name in ("", "breakeven", "plan"):
            page = opened(browser, f"{address}/{name}", size)
            box = page.locator(".be-answer").first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= size["height"], (name, size)
            page.close()
