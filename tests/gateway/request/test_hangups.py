"""How much may have been made unseen of what was given up, by the provider's term."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds.outcome import AttemptOutcome
from gateway.request.hangups import (
    UnseenTerms,
    can_think,
    lists_reasoning,
    thought_tokens,
    unseen_output,
    unseen_tokens,
)
from ledger.prices.book import Price, PriceTerms, TierRates, rates_from
from router.target_output import EndedAnswer, TargetOutput
from router.types import Feature

GONE = AttemptOutcome("client_gone", 499)
rates = st.none() | st.floats(0.0, 1e6)


def attempt(
    *, goes_on=False, stream=True, members=(), features=(Feature.REASONING,), rates=None,
    last_token_s=None, searches=False, on_disconnect="unknown",
):  # fmt: skip
    listed = {"input": 10, "output": 40, **(rates or {})}
    price = Price(
        version=1, name="p/m", book="t", effective_from_us=0, terms=PriceTerms(rates_from(listed))
    )
    target = SimpleNamespace(
        name="p/m", goes_on=goes_on, features=frozenset(features), on_disconnect=on_disconnect
    )
    frozen = SimpleNamespace(target=target, price=price)
    given = members if isinstance(members, dict) else dict.fromkeys(members, b"1")
    asked = SimpleNamespace(stream=stream, members=given)
    plan = SimpleNamespace(asked=asked, learning_key=("m", "t"))
    step = SimpleNamespace(frozen=frozen)
    return SimpleNamespace(
        plan=plan, step=step, dispatched_s=10.0, last_token_s=last_token_s,
        goes_on=goes_on or searches, searches=searches,
    )  # fmt: skip


def learned(reasoning: int) -> TargetOutput:
    known = TargetOutput()
    known.observe("p/m", EndedAnswer(100, reasoning, 0, 1.0, 1.0), 0.0, team="t")
    return known


@pytest.mark.parametrize(
    ("stops", "streamed", "thinks", "rate", "unseen"),
    [
        (False, True, False, 50.0, math.inf),
        (False, False, True, None, math.inf),
        (True, True, False, None, 0.0),
        (True, True, False, 50.0, 0.0),
        (True, True, True, None, math.inf),
        (True, True, True, 50.0, 200.0),
        (True, False, False, None, math.inf),
        (True, False, False, 50.0, 200.0),
        (True, True, True, 0.0, 1.0),
    ],
)
def test_the_term_decides_how_much_is_unseen(stops, streamed, thinks, rate, unseen) -> None:
    assert unseen_tokens(UnseenTerms(stops, streamed, thinks, rate, 2.0)) == unseen


@given(st.booleans(), rates, st.floats(0.0, 1e5), st.floats(0.0, 1e5))
def test_at_least_what_the_rate_makes_in_the_time_and_more_with_more_time(
    streamed, rate, elapsed_s, more_s
) -> None:
    terms = UnseenTerms(
        stops=True, streamed=streamed, thinks=True, tokens_per_s=rate, elapsed_s=elapsed_s
    )
    unseen = unseen_tokens(terms)
    assert unseen >= 1
    assert unseen >= (rate or 0.0) * elapsed_s
    assert unseen_tokens(terms._replace(elapsed_s=elapsed_s + more_s)) >= unseen


@pytest.mark.parametrize(
    ("outcome", "unseen"),
    [
        (GONE, math.inf),
        (AttemptOutcome("timeout", 504), math.inf),  # by our own limit of time, or a stall
        (AttemptOutcome("client_gone", 499, {}, usage_final=True), 0.0),
        (AttemptOutcome("client_gone", 499, read_on=True), 0.0),
        (AttemptOutcome("finished", 200), 0.0),
        (AttemptOutcome("timeout", 504, error="idle_timeout"), 0.0),  # the target's failure
        (AttemptOutcome("upstream_error", 502, error="upstream_broken"), 0.0),
    ],
)
def test_of_a_model_that_says_all_that_it_makes_only_what_we_gave_up_is_unseen(
    outcome, unseen
) -> None:
    assert unseen_output(attempt(goes_on=True), outcome, TargetOutput(), 12.0) == unseen


BROKEN = AttemptOutcome("upstream_error", 502, error="upstream_broken")
WHOLE = AttemptOutcome("finished", 200)


@pytest.mark.parametrize(
    ("outcome", "changes", "unseen"),
    [
        (BROKEN, {}, 400.0),
        (BROKEN, {"goes_on": True}, math.inf),  # by what it documents, it may think on
        (BROKEN, {"stream": False}, 0.0),  # charging books its bound
        (BROKEN, {"features": ()}, 0.0),
        (AttemptOutcome("upstream_error", 502, error="server_error"), {}, 0.0),
        (AttemptOutcome("upstream_error", 502, error="declined", billable=False), {}, 0.0),
        (WHOLE, {"goes_on": True}, 400.0),
        (WHOLE, {"stream": False}, 400.0),
        (WHOLE, {"members": {}}, 0.0),
        (WHOLE.without_client(), {}, 400.0),
        (AttemptOutcome("finished", 200, {}, usage_final=True), {}, 0.0),
    ],
)
def test_a_model_that_thinks_may_have_thought_before_an_end_without_usage(
    outcome, changes, unseen
) -> None:
    asked = attempt(**{"members": ["thinking"], **changes})
    assert unseen_output(asked, outcome, learned(0), 12.0) == unseen
    if outcome.usage_final:
        assert unseen_output(asked, outcome, learned(0), 12.0, is_told=False) == 400.0
    if unseen == 400.0:
        assert unseen_output(asked, outcome, TargetOutput(), 12.0) == math.inf, "no rate is known"


CALLS = {"tools": b'[{"type": "function"}]'}
SILENT = AttemptOutcome("timeout", 504, error="idle_timeout")


@pytest.mark.parametrize(
    ("members", "is_kept"),
    [
        (CALLS, True),
        ({"functions": b'[{"name": "f"}]'}, True),
        ({**CALLS, "tool_choice": b'"none"'}, False),
        ({"tools": b"[]"}, False),
        ({"tools": b"[]", "functions": b'[{"name": "f"}]'}, True),
        ({"response_format": b'{"type": "json_object"}'}, True),
        ({"response_format": b'{"type": "json_schema", "json_schema": {}}'}, True),
        ({"response_format": b'{"type": "text"}'}, False),
        ({}, False),
    ],
)
def test_a_call_or_json_may_be_kept_back_since_the_target_was_heard_last(members, is_kept) -> None:
    """Some send either in one piece; at most as fast as it was ever seen, with a margin."""
    for outcome in (SILENT, GONE, BROKEN):
        heard = attempt(members=members, last_token_s=11.5)
        assert unseen_output(heard, outcome, learned(0), 12.0) == (100.0 if is_kept else 0.0)
    unheard = attempt(members=members)
    assert unseen_output(unheard, SILENT, learned(0), 12.0) == (400.0 if is_kept else 0.0)
    assert unseen_output(unheard, WHOLE, learned(0), 12.0) == 0.0, "all of it came"
    on = attempt(members=members, goes_on=True, last_token_s=11.5)
    assert unseen_output(on, SILENT, learned(0), 12.0) == (math.inf if is_kept else 0.0)
    assert unseen_output(heard, SILENT, TargetOutput(), 12.0) == (
        2 * 20_000 * 0.5 if is_kept else 0.0
    ), "nobody is faster"


@pytest.mark.parametrize(
    ("changes", "unseen"),
    [
        ({"goes_on": True}, 0.0),
        ({"goes_on": True, "members": ["thinking"]}, math.inf),
        ({"goes_on": False, "members": ["thinking"]}, 400.0),
        ({"goes_on": True, "stream": False}, math.inf),
        ({"goes_on": False, "stream": False}, 400.0),
    ],
)
@pytest.mark.parametrize("kind", ["idle_timeout", "head_timeout"])
def test_a_silent_target_may_be_thinking(changes, unseen, kind) -> None:
    """A stream that halts is no thought; an answer in one piece is silent until its end."""
    outcome = AttemptOutcome("timeout", 504, error=kind)
    assert unseen_output(attempt(**changes), outcome, learned(0), 12.0) == unseen


@pytest.mark.parametrize(
    ("rates", "above", "thought"),
    [
        (None, {}, 0),
        ({"output": 4, "reasoning": 4}, {}, 0),
        ({"output": 4, "reasoning": 3}, {}, 0),
        ({"output": 4, "reasoning": 5}, {}, 50),
        ({"output": 4, "reasoning": 4}, {"output": 4, "reasoning": 5}, 50),
        ({"output": 4, "reasoning": 5}, {"output": 9, "reasoning": 9}, 50),
    ],
)
def test_what_is_unseen_is_booked_as_thoughts_where_these_cost_more(rates, above, thought) -> None:
    """In whichever schedule: a prompt's length decides which one is charged."""
    price = None
    if rates is not None:
        schedules = (TierRates("standard", 9, rates_from({"input": 1, **above})),) if above else ()
        terms = PriceTerms(rates_from({"input": 1, **rates}), schedules)
        price = Price(1, "up/m", "book", 0, terms)
    frozen = SimpleNamespace(price=price)
    assert thought_tokens(SimpleNamespace(step=SimpleNamespace(frozen=frozen)), 50) == thought


def test_the_time_is_that_since_the_dispatch() -> None:
    asked = attempt(members=["reasoning_effort"])
    assert unseen_output(asked, GONE, learned(0), 12.5) == 2 * 100 * 2.5
    assert unseen_output(attempt(), GONE, learned(0), 12.5) == 0.0


@pytest.mark.parametrize(
    ("changes", "hidden", "thinks"),
    [
        ({}, TargetOutput(), False),
        ({}, learned(0), False),
        ({}, learned(60), True),
        ({"members": ["reasoning_effort"]}, TargetOutput(), True),
        ({"members": ["thinking"]}, TargetOutput(), True),
        ({"rates": {"reasoning": 90}}, TargetOutput(), True),
        ({"rates": {"reasoning": 40}}, TargetOutput(), False),
        ({"members": ["reasoning_effort"], "features": ()}, learned(60), False),
    ],
)
def test_a_model_thinks_that_is_asked_to_priced_for_it_or_was_seen_to(
    changes, hidden, thinks
) -> None:
    assert can_think(attempt(**changes), hidden) is thinks


@pytest.mark.parametrize(
    ("changes", "schedule", "thinks"),
    [
        ({"reasoning_outside": True}, {}, True),
        ({"reasoning_outside": True, "reasoning_limit": 4000}, {}, True),
        ({}, {"reasoning": 90}, True),
        ({}, {"output": 80}, False),
    ],
)
def test_a_model_thinks_whose_price_says_so_in_any_of_its_terms(changes, schedule, thinks) -> None:
    listed = {"input": 10, "output": 40}
    tier = TierRates("priority", 0, rates_from({**listed, **schedule}))
    terms = PriceTerms(rates_from(listed), (tier,), **changes)
    assert lists_reasoning(Price(1, "p/m", "t", 0, terms)) is thinks


ENDS = [
    GONE,
    AttemptOutcome("finished", 200),
    AttemptOutcome("upstream_error", 502, error="upstream_broken"),
    AttemptOutcome("timeout", 504, error="idle_timeout"),
]


@pytest.mark.parametrize("outcome", ENDS, ids=lambda outcome: outcome.error or outcome.status)
def test_what_may_have_searched_is_unseen_until_usage_tells(outcome) -> None:
    """Red before: searches, and what was read of them, were free where a client left."""
    plain, searches = attempt(features=()), attempt(features=(), searches=True)
    assert unseen_output(plain, outcome, TargetOutput(), 12.0) == 0.0
    assert unseen_output(searches, outcome, TargetOutput(), 12.0) == math.inf
    assert unseen_output(searches, outcome, TargetOutput(), 12.0, is_told=True) == 0.0


@pytest.mark.parametrize("error", ["server_error", "refused"])
def test_who_says_that_it_failed_has_searched_nothing(error) -> None:
    outcome = AttemptOutcome("upstream_error", 500, error=error)
    assert unseen_output(attempt(searches=True), outcome, TargetOutput(), 12.0) == 0.0


@pytest.mark.parametrize("error", ["head_timeout", "idle_timeout"])
def test_a_silent_provider_that_goes_on_makes_what_nobody_waits_for(error) -> None:
    """Red before: its whole answer was billed, and its prompt booked."""
    outcome = AttemptOutcome("timeout", 504, error=error)
    unknown = attempt(goes_on=True, features=())
    assert unseen_output(unknown, outcome, TargetOutput(), 12.0) == 0.0
    going = attempt(goes_on=True, features=(), on_disconnect="continues")
    assert unseen_output(going, outcome, TargetOutput(), 12.0) == math.inf
