"""A scenario's base is the books' month, and its lines meet where the formula says."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dashboard.data import reads
from dashboard.scenario import bars, base_case, lines
from dashboard.volume_steps import ladder
from ledger.economics.cost import TokenBasis
from ledger.economics.sensitivity import outcome, tornado
from ledger.prices.stored import load_price_book
from ledger.queries.reads import DAY_US, Scope
from ledger.reports.fleet_economics import ComparatorKind
from ledger.reports.survey import survey


@pytest.fixture(scope="module")
def base(month):
    engine = reads.open_readonly(month.url)
    with engine.connect() as connection:
        scope = Scope.last(30 * DAY_US, month.now_us)
        look = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
    steps = ladder(look, "llama-70b", ComparatorKind.SUBSTITUTE, spares=0)
    (verdict, _) = steps.standing.verdicts
    price = load_price_book(engine).find(verdict.comparators[0], month.now_us)
    engine.dispose()
    return base_case(look, "llama-70b", steps, verdict, price), steps, verdict, look


def test_the_base_is_the_month_of_the_books(base, month) -> None:
    found, steps, verdict, _ = base
    case = found.case
    assert found.listed
    assert case.gpu_pusd_per_hour == 400_000_000_000
    assert case.ops_hours_per_week == Fraction(1, 2)
    good = [(item, last) for item, last in month.pairs if item.backend == "own" and last.slo_met]
    prompt = sum(last.tokens.input + last.tokens.cached for _, last in good)
    output = sum(last.tokens.output for _, last in good)
    assert case.input_share == Fraction(prompt, prompt + output)
    assert case.cached_share == Fraction(sum(last.tokens.cached for _, last in good), prompt)
    assert case.avoided.pusd_per_token == verdict.average.pusd_per_token, "same prices, same mix"
    assert (
        case.configuration.capacity.tokens
        == steps.capability.capability.volume.tokens * steps.scale
    )


def test_without_listed_prices_every_token_costs_the_average(base) -> None:
    found, steps, verdict, look = base
    flat = base_case(look, "llama-70b", steps, verdict, None)
    assert not flat.listed
    assert flat.case.avoided.pusd_per_token == found.case.avoided.pusd_per_token
    turned = replace(flat.case, cached_share=Fraction(1))
    assert turned.avoided.pusd_per_token == flat.case.avoided.pusd_per_token


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 25), Fraction(4, 10)])
def test_the_lines_meet_at_v_star_where_it_is_within_reach(base, rate: Fraction) -> None:
    case = replace(base[0].case, gpu_pusd_per_hour=rate * 10**12)
    told = outcome(case)
    records, marks, capacity = lines(case)
    met = [mark["volume"] for mark in marks if mark["sort"] == "even"]
    assert met == ([pytest.approx(float(told.volume_tokens))] if told.feasible else [])
    assert capacity == pytest.approx(float(case.configuration.capacity.tokens))
    assert {record["kind"] for record in records} == {"API", "own GPUs, overflow bought"}


def test_bars_are_changes_of_the_result(base) -> None:
    case = base[0].case
    result = outcome(case).result_pusd
    found = bars(tornado(case, share=Fraction(1, 5)), result)
    assert found[0]["order"] == 0
    rate = {finding["end"]: finding["usd"] for finding in found if finding["name"] == "GPU rate"}
    assert rate["-20 %"] == pytest.approx(0.2 * 720 * 0.4)
    assert rate["+20 %"] == pytest.approx(-0.2 * 720 * 0.4)
