"""What is promised is said in words, beside what was kept of it, by policy."""

import time

import pytest

from dashboard import theme, viewer_identity
from dashboard.data.reads import DashboardView
from dashboard.sections import slo_blocks
from dashboard.viewer import Viewer
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE
from ledger.queries.reads import SloAttainment

CALM = {"policy": "calm", "ttft_ms": 500.0, "tpot_ms": 40.0, "attainment": 0.99}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "99 % within 0.5 s, then 40 ms a token"),
        ({"tpot_ms": None}, "99 % within 0.5 s"),
        ({"ttft_ms": None, "attainment": 0.999}, "99.9 % 40 ms a token"),
    ],
)
def test_a_promise_is_a_sentence(more: dict, said: str) -> None:
    assert slo_blocks.promise_text({**CALM, **more}) == said


@pytest.mark.parametrize(
    ("met", "said", "colour"),
    [
        (1_000, "100.0 %, +1.0 points", theme.GAIN),
        (990, "99.0 %, just so", theme.GAIN),
        (970, "97.0 %, \N{MINUS SIGN}2.0 points", theme.LOSS),
    ],
)
def test_by_how_much_it_was_kept(met: int, said: str, colour: str) -> None:
    told = "calm: 99 % within 0.5 s, then 40 ms a token"
    assert slo_blocks.row(SloAttainment("calm", 1_000, met), CALM) == (told, said, colour)
    assert slo_blocks.row(SloAttainment("calm", 1_000, 970), None) == ("calm", "97.0 %", None)


def test_the_first_page_says_what_was_kept_also_without_a_gateway(
    books, page, text_of, serving, monkeypatch
) -> None:
    filled = books(days=1, peak=2.0)
    alone = text_of(page("answer", filled.url, period="7 d"))
    assert "default" in alone
    assert "to which something was promised" in alone
    served = serving(filled.url)
    monkeypatch.setenv(GATEWAY, served.address)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(served.state / KEY_FILE))
    monkeypatch.setattr(
        viewer_identity, "AT_THIS_MACHINE", Viewer("fay@example.com", DashboardRole.FINANCE)
    )
    now_us = time.time_ns() // 1000
    view = DashboardView(
        filled.url, "7 d", None, now_us, who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    (plain,) = slo_blocks.stated_promises(view)
    assert plain == {"policy": "plain", "ttft_ms": 2000.0, "tpot_ms": 90.0, "attainment": 0.95}
