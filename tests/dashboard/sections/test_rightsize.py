"""Other GPUs for a pool's load: by the product's own load and bill, in words that say how known."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dashboard.data import reads
from dashboard.sections.rightsize import monthly_pusd, other_options, sentence
from dashboard.viewer_identity import AT_THIS_MACHINE


@pytest.fixture(scope="module")
def found(books):
    filled = books(peak=20.0, days=2)
    view = reads.DashboardView(filled.url, "24 h", None, filled.now_us, who=lambda: AT_THIS_MACHINE)
    look = reads.survey(view).pools["llama-70b"]
    (bill,) = look.standing.bills
    return look, bill, reads.market(view)


def test_kinds_with_a_rate_are_compared(found) -> None:
    look, bill, known = found
    sizes = other_options(look, bill, known)
    assert [size.gpu.name for size in sizes] == ["H100"], "an L40S has no public rate"
    assert sizes[0].scaled == Fraction(3_350, 300)
    assert sizes[0].gpus == 1
    assert monthly_pusd(bill) == pytest.approx(720 * 400_000_000_000, rel=1e-9)
    text = sentence(bill, sizes)
    assert text.startswith("1 x H100 would cost more by \\$4,738 a month")
    assert "Not measured" in text
    cheap = [replace(sizes[0], pusd_per_month=0)]
    assert sentence(bill, cheap).startswith("1 x H100 would save \\$288.00 a month")
    assert sentence(bill, []).startswith("No other kind")


@pytest.mark.parametrize(
    "change",
    [{"gpu_type": "of no catalogue"}, {"pusd_per_hour": None}, {"share": Fraction(1, 2)}],
)
def test_where_too_little_is_known_nothing_is_said(found, change: dict) -> None:
    look, bill, known = found
    assert other_options(look, replace(bill, **change), known) is None
