"""What of an answer that was given up is booked, where nobody saw how much was made of it."""

import msgspec
import pytest
from charge_cases import GONE, PRICE, USAGE, api, attempt, charge

from gateway.kinds.outcome import AttemptOutcome
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, bound_pusd, rates_from
from router.target_output import EndedAnswer, TargetOutput


@pytest.mark.parametrize("stream", [True, False])
def test_what_goes_on_unseen_is_booked_at_its_bound_and_marked(stream):
    found = api(GONE, stream=stream, events=7, max_tokens=300, goes_on=True)
    assert (found.tokens, found.basis) == (TokenCounts(input=2000, output=300), "bound")
    assert found.unseen


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("named", "rates"), [(None, (40, 80)), ("flex", (10, 20))])
def test_what_goes_on_unseen_costs_its_hold_in_the_tier_that_it_may_have(stream, named, rates):
    bound = bound_pusd(PRICE, prompt_tokens=2000, output_tokens=300)
    gone = msgspec.structs.replace(GONE, tier=named) if named else GONE
    found = api(gone, stream=stream, max_tokens=300, goes_on=True, bound_pusd=bound)
    assert found.cost_pusd == 2000 * rates[0] + 300 * rates[1]
    assert (found.cost_pusd == bound) is (named is None)
    assert (found.tier, found.unknown_tier) == (named or "priority", False)
    assert (found.tokens, found.unseen) == (TokenCounts(input=2000, output=300), True)


def test_what_goes_on_unseen_may_have_been_thoughts_that_cost_more_and_searches():
    terms = PriceTerms(
        rates_from({"input": 1, "output": 4, "reasoning": 6}), search_pusd=50, searches_limit=3
    )
    dear = Price(1, "p/m", "t", 0, terms)
    bound = bound_pusd(dear, prompt_tokens=2000, output_tokens=300)
    found = api(GONE, stream=True, max_tokens=300, goes_on=True, bound_pusd=bound, price=dear)
    assert found.cost_pusd == bound == 2000 + 300 * 6 + 3 * 50
    assert (found.tokens.reasoning, found.tokens.searches) == (300, 3)


@pytest.mark.parametrize(("rate", "reasoning"), [(120, 40), (80, 0), (60, 0)])
def test_what_was_thought_until_a_target_stopped_is_booked_at_what_thoughts_cost(rate, reasoning):
    """At no less than at what is said, whose price counts where thoughts are cheaper."""
    beside = TargetOutput()
    beside.observe("p/m", EndedAnswer(20, 0, 0, None, 1.0), 1.0)
    listed = rates_from({"input": 10, "output": 80, "reasoning": rate})
    dear = Price(1, "p/m", "t", 0, PriceTerms(listed))
    left = attempt(
        own=False, price=dear, stream=True, events=10, max_tokens=300,
        members={"reasoning_effort": b"1"},
    )  # fmt: skip
    found = charge(left, GONE, target_output=beside, now_s=11.0)
    assert (found.tokens.output, found.tokens.reasoning) == (50, reasoning)
    assert found.cost_pusd == 500 * 10 + 50 * 80 + reasoning * (rate - 80)


def test_a_figure_of_the_beginning_does_not_hide_what_goes_on_unseen():
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}
    outcome = AttemptOutcome("client_gone", 499, usage)
    found = api(outcome, stream=True, events=7, max_tokens=300, goes_on=True)
    assert (found.tokens.output, found.basis, found.unseen) == (300, "bound", True)


@pytest.mark.parametrize("stream", [True, False])
def test_what_was_read_to_its_end_is_booked_as_reported(stream):
    outcome = AttemptOutcome("finished", 200, USAGE, usage_final=True).without_client()
    found = api(outcome, stream=stream, max_tokens=300, goes_on=True)
    assert (found.tokens.output, found.basis, found.unseen) == (10, "reported", False)


def test_a_stream_that_was_read_to_its_end_without_usage_is_estimated():
    outcome = AttemptOutcome("finished", 200, said_bytes=400).without_client()
    found = api(outcome, stream=True, events=90, max_tokens=300, goes_on=True)
    assert (found.tokens.output, found.basis, found.unseen) == (100, "estimated", False)


@pytest.mark.parametrize(
    ("members", "output", "basis"),
    [({}, 10, "estimated"), ({"reasoning_effort": b"1"}, 10 + 40, "estimated")],
)
def test_who_stops_is_booked_at_what_was_said_and_may_have_been_thought(members, output, basis):
    """20 tokens in its only second are known; 1 s passed until the client left."""
    beside = TargetOutput()
    beside.observe("p/m", EndedAnswer(20, 0, 0, None, 1.0), 0.0)
    left = attempt(own=False, price=PRICE, stream=True, events=10, max_tokens=300, members=members)
    found = charge(left, GONE, target_output=beside, now_s=11.0)
    assert (found.tokens.output, found.basis, found.unseen) == (output, basis, False)
    late = charge(left, GONE, target_output=beside, now_s=99.0)
    most = (300, "bound", True) if members else (10, "estimated", False)
    assert (late.tokens.output, late.basis, late.unseen) == most
