"""Blocks of HTML: text from the books is escaped, gauges keep their order."""

import re

from dashboard import look


def test_text_from_the_books_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    blocks = (
        look.big(evil),
        look.small(evil, f"**{evil}**"),
        look.rows((evil, evil, "#fff")),
        look.gauge(1.0, 2.0, 3.0, (evil, evil, evil), "#fff"),
    )
    for block in blocks:
        assert "<script>" not in block
        assert "&lt;script&gt;" in block


def test_stars_make_bold() -> None:
    assert "<b>1</b> of 2" in look.small("**1** of 2")


def widths(block: str, name: str) -> list[float]:
    return [float(one) for one in re.findall(rf"{name}:([0-9.]+)%", block)]


def test_shares_fill_the_bar() -> None:
    assert widths(look.shares((1, "a"), (3, "b")), "width") == [25.0, 75.0]
    assert widths(look.shares((0, "a")), "width") == [0.0]


def test_a_gauge_places_volume_break_even_and_capacity() -> None:
    block = look.gauge(50.0, 100.0, 80.0, ("here", "even", "end"), "#fff")
    mark = float(re.search(r'be-mark" style="left:([0-9.]+)', block).group(1))
    assert widths(block, "width")[0] < mark <= 95
    beyond = float(re.search(r"left:([0-9.]+)%;width", block).group(1))
    assert widths(block, "width")[0] < beyond < mark


def test_a_gauge_without_capacity_or_break_even() -> None:
    block = look.gauge(0.0, None, None, ("none", "", ""), "#fff")
    assert "be-mark" not in block
    assert "repeating-linear-gradient" not in block


def test_a_capacity_far_away_is_named_at_the_edge() -> None:
    block = look.gauge(50.0, 60.0, 9_000.0, ("here", "even", "capacity"), "#fff")
    assert "repeating-linear-gradient" not in block
    assert "capacity &gt;" in block
    assert widths(block, "width")[0] > 50
