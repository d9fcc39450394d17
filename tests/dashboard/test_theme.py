"""Blocks of HTML: text from the books is escaped, gauges keep their order."""

import itertools
import math
import re

import pytest

from dashboard import theme
from dashboard.charts.plots import PALETTE
from dashboard.planning import COLOURS, MORE_RESERVED


def test_text_from_the_books_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    blocks = (
        theme.big(evil),
        theme.small(evil, f"**{evil}**"),
        theme.rows((evil, evil, "#fff")),
        theme.gauge(1.0, 2.0, 3.0, (evil, evil, evil), "#fff"),
    )
    for block in blocks:
        assert "<script>" not in block
        assert "&lt;script&gt;" in block


def test_stars_make_bold() -> None:
    assert "<b>1</b> of 2" in theme.small("**1** of 2")


def widths(block: str, name: str) -> list[float]:
    return [float(match_text) for match_text in re.findall(rf"{name}:([0-9.]+)%", block)]


def test_shares_fill_the_bar() -> None:
    assert widths(theme.shares((1, "a"), (3, "b")), "width") == [25.0, 75.0]
    assert widths(theme.shares((0, "a")), "width") == [0.0]


def test_a_gauge_places_volume_break_even_and_capacity() -> None:
    block = theme.gauge(50.0, 100.0, 80.0, ("here", "even", "end"), "#fff")
    mark = float(re.search(r'be-mark" style="left:([0-9.]+)', block).group(1))
    assert widths(block, "width")[0] < mark <= 95
    beyond = float(re.search(r"left:([0-9.]+)%;width", block).group(1))
    assert widths(block, "width")[0] < beyond < mark


def test_a_gauge_without_capacity_or_break_even() -> None:
    block = theme.gauge(0.0, None, None, ("none", "", ""), "#fff")
    assert "be-mark" not in block
    assert "repeating-linear-gradient" not in block


def test_a_capacity_far_away_is_named_at_the_edge() -> None:
    block = theme.gauge(50.0, 60.0, 9_000.0, ("here", "even", "capacity"), "#fff")
    assert "repeating-linear-gradient" not in block
    assert "capacity &gt;" in block
    assert widths(block, "width")[0] > 50


def test_a_volume_beside_a_capacity_at_the_edge_leaves_room_for_its_name() -> None:
    """On a phone both names touched: the volume is the end of the bar, at two thirds."""
    block = theme.gauge(90.0, 60.0, 9_000.0, ("here", "even", "capacity"), "#fff")
    here, edge = re.findall(r'be-tag down" style="left:([0-9.]+)%', block)
    assert float(edge) - float(here) >= 40
    near = theme.gauge(90.0, 60.0, 100.0, ("here", "even", "capacity"), "#fff")
    assert float(re.search(r'be-tag down" style="left:([0-9.]+)%', near).group(1)) > 80


# Severe protanopia, deuteranopia, tritanopia (Machado, Oliveira, Fernandes 2009), on linear RGB.
VISIONS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deutan": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritan": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
TOGETHER = {
    "money": (theme.OWN, theme.LIGHT.idle, theme.DOWN, theme.API),
    "money, dark": (theme.OWN, theme.DARK.idle, theme.DOWN, theme.API),
    "break-even": (theme.OWN, "#6FB5AC", theme.SUBSTITUTE, theme.SAME_WEIGHTS),
    "plan": (*COLOURS.values(), MORE_RESERVED),
    "palette": PALETTE,
}
APART = 14.0  # CIE76; 2.3 is just noticeable side by side


def linear(colour: str) -> list[float]:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def lab(colour: str, vision: str) -> tuple[float, float, float]:
    rgb = linear(colour)
    r, g, b = (
        min(1.0, max(0.0, sum(a * item for a, item in zip(row, rgb, strict=True))))
        for row in VISIONS[vision]
    )
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.0888
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def nearest(colours, vision: str) -> float:
    pairs = itertools.combinations(colours, 2)
    return min(math.dist(lab(item, vision), lab(other, vision)) for item, other in pairs)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("chart", TOGETHER)
def test_colours_of_one_chart_are_told_apart_by_everyone(chart: str, vision: str) -> None:
    assert nearest(TOGETHER[chart], vision) > APART


def test_green_and_magenta_of_one_lightness_would_be_found() -> None:
    assert nearest(("#0F766E", "#B4478F"), "normal") > APART
    assert nearest(("#0F766E", "#B4478F"), "deutan") < APART


def contrast(name: str, other: str) -> float:
    light = sorted(
        sum(k * c for k, c in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))
        for colour in (name, other)
    )
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("inks", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_words_are_readable_on_their_paper(inks) -> None:
    for word in (inks.ink, inks.muted, inks.gain, inks.loss):
        assert contrast(word, inks.card) >= 4.5
    for colour in (theme.OWN, theme.SUBSTITUTE, theme.SAME_WEIGHTS):
        assert contrast(colour, inks.card) >= 2.9, "a line on its paper"
    assert contrast(inks.idle, inks.card) <= 6.0, "what nobody used is no lamp"


def test_a_card_leads_to_its_meaning_and_its_rows_with_what_was_chosen(monkeypatch) -> None:
    chosen = {"team": "search & more", "money": "EUR", "request": "r1"}
    monkeypatch.setattr(theme.st, "query_params", chosen)
    title = theme._title_with_link("Spent", "spend")
    kept = "team=search+%26+more&amp;money=EUR"
    assert f'href="terms?{kept}#spend"' in title
    assert f'href="spend?{kept}#requests"' in title
    assert f'href="engines?{kept}#samples"' in theme._title_with_link("Engine", "engine")
    assert ">requests</a>" in title, "words of a link that a reader of screens finds"
    assert "requests" not in theme._title_with_link("What-if", "whatif")
