"""The report is one file: plots inside, nothing fetched, names from outside escaped."""

import builtins
import re

import pytest
from playwright.sync_api import sync_playwright

from gateway.whatif.page import PlotsMissingError
from gateway.whatif.page import page as html_of

# How far ink stands from paper, as WCAG counts it: words of the plots, and those around them.
CONTRAST = """() => {
  const light = text => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map(one => one / 255)
      .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const far = ink => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  const words = [...document.querySelectorAll('svg text')].map(one => getComputedStyle(one).fill);
  const around = [...document.querySelectorAll('h1, p, td, li')].map(
    one => getComputedStyle(one).color);
  return [light(getComputedStyle(document.body).backgroundColor),
          Math.min(...[...words, ...around].map(light).map(far))];
}"""
LOWEST = """() => Math.min(...[...document.querySelectorAll('svg text')]
  .map(one => one.getBoundingClientRect().height).filter(one => one > 0))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_read_on_a_phone_and_by_night(busy, chromium, scheme) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        page.set_content(html_of(busy))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate(LOWEST) >= 9  # pixels
        paper, contrast = page.evaluate(CONTRAST)
        assert contrast >= 4.5
        assert (paper < 0.1) is (scheme == "dark")
        browser.close()


def test_it_stands_alone(busy) -> None:
    html = html_of({**busy, "traffic": {**busy["traffic"], "source": "<script>x.csv"}})
    assert html.count("<svg") == 5
    assert "<script" not in html
    assert "&lt;script&gt;x.csv" in html
    assert not re.search(r"(src|href)=", html.replace("xlink:href", ""))
    for figure in ("fixed + $", "Promises kept, by class", "KV cache in use", "requests (", "old"):
        assert figure in html


def test_without_the_drawing_libraries_it_says_how_to_have_them(busy, monkeypatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "vl_convert":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PlotsMissingError, match=r"breakeven\[dashboard\]"):
        html_of(busy)
