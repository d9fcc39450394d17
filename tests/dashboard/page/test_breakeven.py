"""The chart's page: both comparators, both token bases, spares, and what is missing."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from sqlalchemy import create_engine

from dashboard import formatting
from dashboard.data import reads
from dashboard.page.breakeven import break_even_lines, capacity_text
from ledger.database import migrate
from ledger.economics.cost import TokenBasis, Volume
from ledger.fleet.capability import CapabilitySource, FleetCapability
from ledger.queries.reads import DAY_US, Scope
from ledger.reports.survey import survey
from ledger.reports.verdict_read import read_verdict

BOTH = TokenBasis.INPUT_OUTPUT


def test_the_verdict_and_its_options_stand_first(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    shown = text_of(test)
    assert shown.index("Keep 1 GPU, worth") < shown.index("Cost per 1M tokens, input + output")
    for name in ("anthropic/claude-haiku-4-5", "deepinfra/llama-3.3-70b"):
        assert name in shown
    assert "Break-even against the substitute model:" in shown
    assert re.search(r"2 GPUs: GPUs \$576.00, ops \$42.86, APIs \$0.00", shown)
    assert len(test.get("vega_lite_chart")) == 1


def test_dollars_are_the_same_on_the_other_basis(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    before = re.search(r"Keep 1 GPU, worth \S+ a month", text_of(test)).group()
    test.segmented_control(key="basis").set_value("output only").run()
    assert not test.exception
    assert before in text_of(test)


def test_the_other_basis_changes_figures_and_names(page, month, text_of) -> None:
    test = page("breakeven", month.url)
    before = re.search(r"substitute model:\s+(\S+)", text_of(test)).group(1)
    test.segmented_control(key="basis").set_value("output only").run()
    assert not test.exception
    shown = text_of(test)
    assert "Cost per 1M tokens, output only" in shown
    assert re.search(r"substitute model:\s+(\S+)", shown).group(1) != before


def test_break_even_volume_equals_fixed_cost_over_the_average_avoided_price(
    page, month, text_of
) -> None:
    good = [
        last for first, last in month.pairs if first.backend == "own" and last.slo_met
    ]  # fmt: skip
    tokens = sum(item.tokens.input + item.tokens.cached + item.tokens.output for item in good)
    avoided = sum(item.compared[0].cost_pusd for item in good)
    fixed_month = 720 * 0.4 + 720 / 168 * 10
    volume = fixed_month / (avoided / 1e12 / tokens)
    shown = re.search(r"substitute model:\s+([0-9.]+)M", text_of(page("breakeven", month.url)))
    assert float(shown.group(1)) == pytest.approx(volume / 1e6, rel=0.005)


def test_what_is_missing_is_asked_for(page, books, text_of) -> None:
    unrated = books(rate_pusd=None, peak=3.0, days=2)
    assert "Enter your GPU rate for `llama-70b`" in text_of(page("breakeven", unrated.url))


def test_the_caption_says_what_the_capacity_rests_on(page, month, text_of) -> None:
    shown = text_of(page("breakeven", month.url))
    assert "from measured step times at these requests' lengths" in shown
    assert re.search(r"windows of [0-9]+ min", shown)


@pytest.fixture(scope="module")
def look(month):
    with reads.open_readonly(month.url).connect() as connection:
        scope = Scope(month.now_us - 30 * DAY_US, month.now_us)
        found = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
    return found.pools["llama-70b"]


@pytest.mark.parametrize(
    ("basis", "measured", "said"),
    [
        (
            CapabilitySource.SPILLS,
            9_000,
            "lack of room show; step times alone, at these requests' lengths",
        ),
        (
            CapabilitySource.SPILLS,
            None,
            "as 812 requests that spilled for lack of room show.",
        ),
        (CapabilitySource.SERVED, 9_000, "as was served for whole hours; step times alone"),
        (
            CapabilitySource.FLOOR,
            None,
            "nothing is measured (812 requests that spilled for lack of room: too",
        ),
        (
            CapabilitySource.FLOOR,
            None,
            "at least **20.0k tokens a minute**, the busiest minutes served",
        ),
        (CapabilitySource.MEASURED, 20_000, "**20.0k tokens a minute**, from measured step times"),
    ],
)
def test_each_basis_of_a_capacity_is_said(look, basis, measured, said) -> None:
    able = replace(
        look.capability,
        capability=FleetCapability(look.capability.capability.volume, basis, 812),
        spills_tell=False,
        per_minute=Fraction(20_000),
        measured_per_minute=None if measured is None else Fraction(measured),
    )
    assert said in capacity_text(able)


def test_break_even_that_is_not_reached_says_why(look) -> None:
    """What is out of reach has its cures."""
    _, second = look.standing.verdicts
    far = replace(second, even=replace(second.even, capacity=Volume(1, BOTH)))
    lines = break_even_lines(look.standing, far)
    assert lines[0] == "No break-even against the same weights elsewhere."
    assert "Cannot break even" in lines[1]


def test_without_own_hardware_nobody_reads_of_zero_dollars(page, text_of, tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    said = text_of(page("breakeven", url))
    assert "No own hardware is configured" in said
    assert "$0" not in said


def test_the_report_has_the_break_even_volumes_of_the_page(page, month, text_of) -> None:
    engine = create_engine(month.url)
    with engine.connect() as connection:
        scope = Scope(month.now_us - 30 * DAY_US, month.now_us)
        document = read_verdict(connection, scope).beside()
    engine.dispose()
    told = " ".join(text_of(page("breakeven", month.url)).split())
    lines = document["break_even"]
    assert {line["against"] for line in lines} == {"substitute model", "same weights elsewhere"}
    for line in lines:
        if line["state"] in ("reached", "not reached"):
            tokens = formatting.tokens(line["tokens_per_month"])
            assert f"Break-even against the {line['against']}: {tokens} tokens a month" in told
        else:
            assert f"No break-even against the {line['against']}" in told
