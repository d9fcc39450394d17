"""An address that somebody made up: its page is drawn, of what can be, and says the rest.

Every choice of a page stands in its address, so whoever sends a link says what is in it.
"""

import re
from collections.abc import Callable, Iterator

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from dashboard import navigation
from dashboard.sections.planform import FIELDS

OF_ALL = ("period", "days", "team", "zone", "money", "live")
OF_PAGES = {
    "answer": (),
    "breakeven": (
        "pool", "scenario", "whatif-against", "x-rate", "x-gpus", "x-spares", "x-ops", "x-duty",
        "x-mix", "x-hits", "x-volume", "x-price",
    ),
    "spend": ("request",),
    "plan": (*sorted(FIELDS), "rate-L4", "speed-L4-8B", "duty-100"),
}  # fmt: skip
NAMED = ("team", "scenario", "request")  # they are shown as they are
VALUES = (
    "", "nan", "-1", "1e999", "-inf", "99999999999999999999",
    "<img src=x onerror=alert(1)>![p](http://evil.example/p.png)%00../../\u0663", "x" * 3_000,
)  # fmt: skip


@pytest.fixture
def opened(month, monkeypatch) -> Iterator[Callable[..., AppTest]]:
    monkeypatch.setenv("BREAKEVEN_LEDGER_URL", month.url)

    def run(page: str, address: dict[str, str]) -> AppTest:
        test = AppTest.from_file(str(navigation.__file__).replace("navigation.py", "app.py"))
        test.default_timeout = 120
        for name, value in address.items():
            test.query_params[name] = value
        test._page_hash = calc_hash("" if page == "answer" else page)
        test.run()
        assert not test.exception, (address, test.exception)
        return test

    yield run
    st.cache_resource.clear()


@pytest.mark.parametrize("value", VALUES)
def test_every_page_is_drawn_whatever_stands_in_its_address(opened, text_of, value: str) -> None:
    for page, names in OF_PAGES.items():
        named = {name: f"x{value.replace('-', '')}" for name in NAMED}
        test = opened(page, {**dict.fromkeys((*OF_ALL, *names), value), **named})
        shown = text_of(test)
        assert "As of" in shown, page
        assert not re.search(r"\b(nan|inf)\b", shown.lower()), page
        for block in test.get("html"):
            assert "<img" not in block.proto.body
        for text in (*test.markdown, *test.caption, *test.info, *test.warning, *test.error):
            assert not re.search(r"(?<!\\)\]\(http://evil", text.value), text.value
