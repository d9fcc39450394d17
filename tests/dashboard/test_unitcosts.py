"""Unit costs on both token bases: each from its own sums, and never $0 without a rate."""

from fractions import Fraction

import pytest

from dashboard.data import reads
from dashboard.unitcosts import unit_costs
from ledger.economics.cost import TokenBasis
from ledger.queries.reads import DAY_US, Scope
from ledger.reports.survey import survey


def costs_of(url: str, now_us: int, team: str | None = None):
    with reads.open_readonly(url).connect() as connection:
        scope = Scope.last(30 * DAY_US, now_us, team)
        look = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
    return unit_costs(look), look


def test_both_bases_follow_from_the_records(month) -> None:
    (whole, busy, api), look = costs_of(month.url, month.now_us)
    good = [last.tokens for item, last in month.pairs if item.backend == "own" and last.slo_met]
    output = sum(item.output for item in good)
    every = output + sum(item.input + item.cached for item in good)
    bill = Fraction(look.standing.fixed.total_pusd)
    assert whole.per_token == {
        TokenBasis.INPUT_OUTPUT: bill / every, TokenBasis.OUTPUT: bill / output,
    }  # fmt: skip
    used = sum(hour["used_pusd"] for hour in month.hours)
    assert busy.per_token[TokenBasis.OUTPUT] == Fraction(used, output)
    bought = [last for item, last in month.pairs if item.backend == "api"]
    paid = sum(last.cost_pusd or 0 for last in bought)
    assert api.per_token[TokenBasis.OUTPUT] == pytest.approx(
        Fraction(paid, sum(last.tokens.output for last in bought))
    )


def test_without_a_rate_there_is_no_cost_and_a_team_has_no_bill(books, month) -> None:
    filled = books(rate_pusd=None, peak=3.0, days=2)
    found, _ = costs_of(filled.url, filled.now_us)
    assert set(found[0].per_token.values()) == {None}
    found, _ = costs_of(month.url, month.now_us, "finance")
    assert [finding.name for finding in found] == ["APIs, as charged"]
