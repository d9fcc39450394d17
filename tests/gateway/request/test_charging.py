"""What attempts cost: tiers of providers, engine time, and work that a client walked away from."""

from types import SimpleNamespace

import msgspec
import pytest
from charge_cases import COMPLETE, GONE, PRICE, RATE, STEP, USAGE, api, attempt, charge
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.comparators import Comparator
from gateway.fleet.provider_caches import CachedPrompt
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.service_tiers import TIER_LIMIT
from gateway.request.charging import _AttemptHold, compare_cost
from ledger.accounts import provisional_charge_pusd
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, TierRates, rates_from
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.token_ratio import TokenRatio
from router.types import Feature, OutputMoments, RoutingRequest


def test_an_own_engine_without_a_model_of_its_steps_costs_no_time() -> None:
    without = attempt()
    without.step.frozen.candidate.engine.step = None
    bill = charge(without, AttemptOutcome("finished", 200, USAGE, usage_final=True), now_s=12.0)
    assert (bill.tokens.output, bill.engine_us, bill.cost_pusd) == (10, 0, 0)


@pytest.mark.parametrize(
    ("answered", "inside", "tier", "cost", "unknown"),
    [
        (None, None, None, 2400, False),
        ("default", None, "standard", 2400, False),
        ("flex", None, "flex", 1200, False),
        ("priority", None, "priority", 4800, False),
        (None, "priority", "priority", 4800, False),  # Anthropic says it in its usage
        ("flex", "standard", "flex", 1200, False),
        ("scale", None, "scale", 2400, True),
        ("x" * 99, None, "x" * TIER_LIMIT, 2400, True),
        (None, 7, None, 2400, False),
    ],
)
def test_an_api_is_booked_at_the_tier_that_its_answer_names(answered, inside, tier, cost, unknown):
    usage = USAGE if inside is None else {**USAGE, "service_tier": inside}
    found = api(AttemptOutcome("finished", 200, usage, usage_final=True, tier=answered))
    assert (found.tier, found.cost_pusd, found.unknown_tier) == (tier, cost, unknown)
    assert found.basis == "reported"


@pytest.mark.parametrize("uplift", [0, 1])
def test_a_place_is_a_tier_where_the_price_has_none_of_its_own(uplift):
    terms = msgspec.structs.replace(PRICE.terms, uplift_ppm=uplift)
    usage = {**USAGE, "inference_geo": "us"}
    outcome = AttemptOutcome("finished", 200, usage, usage_final=True)
    found = api(outcome, price=msgspec.structs.replace(PRICE, terms=terms))
    assert (found.tier, found.unknown_tier) == ((None, False) if uplift else ("us", True))


def test_a_tier_beside_the_usage_is_printable():
    usage = {**USAGE, "service_tier": "a\0b" + "x" * 70_000}
    assert api(AttemptOutcome("finished", 200, usage, usage_final=True)).tier == "a?b" + "x" * 29


def test_without_a_price_the_tier_is_kept_and_nothing_is_free():
    found = api(AttemptOutcome("finished", 200, USAGE, usage_final=True, tier="flex"), price=None)
    assert (found.tier, found.cost_pusd, found.unknown_tier) == ("flex", None, False)


def test_an_own_engine_has_no_tiers():
    outcome = AttemptOutcome("finished", 200, USAGE, usage_final=True, tier="flex")
    found = charge(attempt(), outcome, now_s=12.0)
    assert (found.tier, found.unknown_tier) == (None, False)
    assert found.cost_pusd == provisional_charge_pusd(found.engine_us, RATE, 1)


def test_an_answer_in_one_piece_that_is_given_up_pays_for_the_engines_time():
    found = charge(attempt(), GONE, now_s=11.1)
    tokens = (1.1 - 0.1) / 0.005
    expected_s = (
        500 * STEP.d_s
        + tokens * STEP.b_s
        + (STEP.c_s + STEP.a_s / 10_000) * (tokens * 500 + tokens**2 / 2)
    )
    assert found.engine_us == round(expected_s * 1e6)
    assert found.cost_pusd == provisional_charge_pusd(found.engine_us, RATE, 1) > 0
    assert (found.tokens, found.basis) == (TokenCounts(input=500), "estimated")


def test_before_the_first_token_is_due_only_its_part_of_the_prefill_is_charged():
    found = charge(attempt(), GONE, now_s=10.05)
    assert found.engine_us == round(500 * STEP.d_s / 2 * 1e6)
    assert (found.tokens, found.basis) == (TokenCounts(), "estimated")


@pytest.mark.parametrize(("passed_s", "part"), [(0.05, 0.5), (0.1, 1.0), (1.1, 1.0)])
def test_a_stream_left_before_it_says_anything_pays_for_what_was_read(passed_s, part):
    """Or long prompts would be read for nothing, over and over, under a hard budget."""
    found = charge(attempt(stream=True), GONE, now_s=10.0 + passed_s)
    assert found.engine_us == round(500 * STEP.d_s * part * 1e6)
    assert found.cost_pusd == provisional_charge_pusd(found.engine_us, RATE, 1) > 0
    assert (found.tokens, found.basis) == (TokenCounts(), "estimated")


def test_no_more_is_charged_than_the_answer_could_have_been_long():
    short = charge(attempt(max_tokens=10), GONE, now_s=11.1)
    assert 0 < short.engine_us < charge(attempt(), GONE, now_s=11.1).engine_us
    assert short.engine_us == charge(attempt(max_tokens=10), GONE, now_s=60.0).engine_us


def test_nor_more_than_was_held():
    assert charge(attempt(bound_pusd=9), GONE, now_s=60.0).cost_pusd == 9


@pytest.mark.parametrize(
    ("outcome", "more"),
    [
        (AttemptOutcome("timeout", 504, error="head_timeout"), {}),  # the engine's fault
        (AttemptOutcome("upstream_error", 502, error="server_error"), {}),
        (AttemptOutcome("rejected", 503, error="overloaded", billable=False), {}),
    ],
)
def test_what_nobody_got_and_nobody_gave_up_is_not_charged(outcome, more):
    found = charge(attempt(**more), outcome, now_s=11.1)
    assert (found.tokens, found.engine_us, found.cost_pusd) == (TokenCounts(), 0, 0)


def test_a_stream_that_is_left_holds_its_last_usage():
    outcome = AttemptOutcome("client_gone", 499, USAGE)
    found = charge(attempt(stream=True, events=9), outcome, now_s=60.0)
    assert (found.tokens, found.basis) == (TokenCounts(input=100, output=10), "continuous")


def test_our_own_deadline_ends_an_answer_as_a_client_does():
    ended = AttemptOutcome("timeout", 499)
    assert charge(attempt(), ended, now_s=11.1) == charge(attempt(), GONE, now_s=11.1)


def test_without_a_rate_the_time_is_kept_and_nothing_is_free():
    left = attempt()
    left.step.frozen.target.rate_pusd_per_hour = None
    found = charge(left, GONE, now_s=11.1)
    assert (found.cost_pusd, found.engine_us > 0) == (None, True)


@given(
    passed_s=st.floats(0.0, 1000.0),
    ttft_ms=st.none() | st.floats(0.001, 10_000.0),
    tpot_ms=st.none() | st.floats(0.0, 1000.0),
    max_tokens=st.none() | st.integers(0, 100_000),
    longer_s=st.floats(0.0, 100.0),
)
def test_engine_time_never_exceeds_the_time_that_passed(
    passed_s, ttft_ms, tpot_ms, max_tokens, longer_s
):
    verdict = SimpleNamespace(ttft_ms=ttft_ms, tpot_ms=tpot_ms)
    costs = []
    for now_s in (10.0 + passed_s, 10.0 + passed_s + longer_s):
        left = attempt(verdict=verdict, max_tokens=max_tokens)
        found = charge(left, GONE, now_s=now_s)
        assert 0 <= found.engine_us <= round((now_s - 10.0) * 1e6)
        assert isinstance(found.cost_pusd, int)
        costs.append(found.cost_pusd)
    assert costs[0] <= costs[1], "who stays longer never pays less"


def whole(text, usage=None, status="finished", **more):
    body = msgspec.json.encode(
        {"id": "x" * 99, "choices": [{"message": {"role": "assistant", "content": text}}]}
    )
    return AttemptOutcome(status, 200, usage, usage_final=True, answer=body, **more)


@pytest.mark.parametrize(
    "outcome",
    [
        GONE,
        AttemptOutcome("timeout", 499),
        AttemptOutcome("timeout", 504, error="head_timeout"),
        AttemptOutcome("timeout", 504, error="idle_timeout"),
        AttemptOutcome("upstream_error", 502, error="upstream_broken"),
        AttemptOutcome("upstream_error", 502, error="bad_answer"),
    ],
)
@pytest.mark.parametrize(
    ("asked", "output"),
    [
        ({"max_tokens": 300}, 300),
        ({"max_tokens": 300, "n": 8}, 2400),
        ({"output_cap": 70}, 70),
        ({"open_end": SimpleNamespace(limit_tokens=9000)}, 9000),
        ({"max_tokens": 2**31 - 1, "n": 8}, 100_000_000),
        ({"max_tokens": 0}, 0),  # an embedding
    ],
)
def test_an_apis_answer_in_one_piece_that_was_given_up_is_booked_at_its_bound(
    outcome, asked, output
):
    """Nobody saw a token, and the provider may have generated all of them."""
    found = api(outcome, **asked)
    assert (found.tokens, found.basis) == (TokenCounts(input=2000, output=output), "bound")
    assert found.cost_pusd == 2000 * 40 + output * 80  # of the dearest tier, as its hold


@pytest.mark.parametrize(
    ("outcome", "tokens"),
    [
        (AttemptOutcome("upstream_error", 502, error="server_error"), TokenCounts(input=500)),
        (AttemptOutcome("upstream_error", 502, error="unreachable", billable=False), TokenCounts()),
        (AttemptOutcome("rejected", 429, error="overloaded", billable=False), TokenCounts()),
    ],
)
def test_an_api_that_said_it_did_nothing_is_not_booked_at_the_bound(outcome, tokens):
    found = api(outcome, max_tokens=300)
    assert (found.tokens, found.basis) == (tokens, "estimated")


@pytest.mark.parametrize(("billable", "cost"), [(False, 0), (True, 500 * 20 + 12_000)])
def test_what_took_no_request_pays_no_fee_of_one(billable, cost):
    fee = msgspec.structs.replace(
        PRICE, terms=msgspec.structs.replace(PRICE.terms, request_pusd=12_000)
    )
    ended = AttemptOutcome("upstream_error", 502, error="server_error", billable=billable)
    assert api(ended, price=fee).cost_pusd == cost


@pytest.mark.parametrize(
    ("said", "events", "more", "output"),
    [
        (1344, 125, {}, 336),  # an event carries several tokens
        (1344, 213, {"n": 4}, 336),
        (40, 25, {}, 25),  # and at least one
        (0, 0, {}, 0),
        (1344, 125, {"max_tokens": 200}, 200),  # never more than was asked for
        (1344, 250, {"max_tokens": 200}, 250),
    ],
)
def test_an_apis_stream_that_is_left_is_booked_by_its_text(said, events, more, output):
    outcome = AttemptOutcome("client_gone", 499, said_bytes=said)
    found = api(outcome, stream=True, events=events, **more)
    assert (found.tokens, found.basis) == (TokenCounts(input=500, output=output), "estimated")


def test_bytes_per_token_are_what_was_learned_but_never_more_than_the_prior():
    outcome = AttemptOutcome("client_gone", 499, said_bytes=1000)
    for bytes_per_token, output in ((2, 400), (100, 250)):
        ratio = TokenRatio()
        for _ in range(1000):
            ratio.observe(("m", "t"), bytes_per_token * 1000, 1000, 0.0)
        left = attempt(own=False, price=PRICE, stream=True, events=9)
        found = charge(left, outcome, ratio=ratio, now_s=12.0)
        assert found.tokens.output >= output


def test_running_usage_of_the_beginning_does_not_stand_for_the_rest():
    usage = {"prompt_tokens": 100, "completion_tokens": 1}
    outcome = AttemptOutcome("client_gone", 499, usage, said_bytes=400)
    found = api(outcome, stream=True, events=50)
    assert (found.tokens, found.basis) == (TokenCounts(input=100, output=100), "estimated")
    found = api(AttemptOutcome("client_gone", 499, USAGE, said_bytes=400), stream=True, events=10)
    assert (found.tokens.output, found.basis) == (10, "continuous")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 10, "completion_tokens": -5},
        {"prompt_tokens": 10, "completion_tokens": 4.5},
        {"prompt_tokens": 10, "completion_tokens": "many"},
        {"prompt_tokens": 10, "completion_tokens": 10**12},
        {"prompt_tokens": 10, "completion_tokens": 0},
        {"prompt_tokens": 10},
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_finished_answer_without_usable_usage_is_estimated_from_its_text(usage, stream):
    outcome = whole("word " * 3600, usage)
    if stream:
        outcome = AttemptOutcome("finished", 200, usage, usage_final=True, said_bytes=18_000)
    found = api(outcome, stream=stream, events=1, max_tokens=10_000)
    assert (found.tokens, found.basis) == (TokenCounts(input=500, output=4500), "estimated")


def test_a_finished_answer_that_says_nothing_is_one_token_and_reported_usage_stands():
    assert api(whole("")).tokens == TokenCounts(input=500, output=1)
    found = api(whole("word " * 250, USAGE))
    assert (found.tokens.output, found.basis) == (10, "reported")


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("change", "disputed", "output"),
    [
        ({}, False, 10),
        ({"completion_tokens": 4000}, True, 20),
        ({"completion_tokens": -1}, True, None),
        ({"completion_tokens": "7"}, True, None),
        ({"total_tokens": 1}, True, 10),  # the most of what contradicts itself
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_is_disputed_and_booked_at_what_can(own, change, disputed, output, stream):
    usage = {"prompt_tokens": 100, "completion_tokens": 10, **change}
    outcome = whole("word " * 10, usage)
    if stream:
        outcome = AttemptOutcome("finished", 200, usage, usage_final=True, said_bytes=50)
    asked = attempt(own=own, price=PRICE, stream=stream, max_tokens=20, events=9, bound_pusd=10**15)
    found = charge(asked, outcome, now_s=12.0)
    assert found.disputed is disputed
    told = not disputed or "total_tokens" in change
    assert found.basis in ({"reported", "bound"} if told else {"bound", "estimated"})
    if output is not None:
        assert found.tokens.output == output
    assert found.tokens.output <= 20


@pytest.mark.parametrize(
    ("said", "count", "disputed"),
    [(18_000, 10, True), (18_000, 0, True), (8, 900, True), (400, 100, False), (0, 1, False)],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_the_text_contradicts_is_disputed(said, count, disputed, stream):
    usage = {"prompt_tokens": 10, "completion_tokens": count}
    outcome = whole("x" * said, usage)
    if stream:
        outcome = AttemptOutcome("finished", 200, usage, usage_final=True, said_bytes=said)
    found = api(outcome, stream=stream, events=1)
    assert found.disputed is disputed
    if not disputed:
        assert found.tokens.output == count, "its invoice will say the same"
    else:
        assert said / 128 <= found.tokens.output <= said + 64, "never at the lie"


def test_a_running_figure_that_lags_and_usage_that_is_missing_are_no_dispute():
    running = {"prompt_tokens": 100, "completion_tokens": 1}
    for usage in (None, {}, running):
        left = AttemptOutcome("client_gone", 499, usage, said_bytes=400)
        assert not api(left, stream=True, events=50).disputed
    assert not api(AttemptOutcome("finished", 200, None), stream=True, events=5).disputed


def test_an_embedding_has_no_output():
    body = b'{"data":[{"embedding":"AAAAAAAA"}]}'
    usage = {"prompt_tokens": 10}
    found = api(AttemptOutcome("finished", 200, usage, usage_final=True, answer=body), max_tokens=0)
    assert (found.tokens, found.basis) == (TokenCounts(input=10), "reported")
    found = api(AttemptOutcome("finished", 200, answer=body), max_tokens=0)
    assert (found.tokens, found.basis) == (TokenCounts(input=500), "estimated")


@pytest.mark.parametrize("own", [False, True])
def test_an_embedding_is_not_read_for_words(monkeypatch, own):
    """256 texts of 1,536 numbers held up every stream of the worker for 23 ms."""
    read = []
    monkeypatch.setattr(
        "gateway.request.reported_usage.answer_content_bytes", lambda body: read.append(body) or 0
    )
    usage = {"prompt_tokens": 10, "total_tokens": 10}
    answer = AttemptOutcome("finished", 200, usage, usage_final=True, answer=b'{"data":[{}]}')
    for kind in (RequestKind.EMBEDDING, RequestKind.CHAT):
        asked = attempt(own=own, price=PRICE, kind=kind, max_tokens=0, events=1, bound_pusd=10**15)
        found = charge(asked, answer, now_s=12.0)
        assert (found.tokens, found.basis) == (TokenCounts(input=10), "reported")
        assert len(read) == (kind is RequestKind.CHAT), "the control is read"


@pytest.mark.parametrize("stream", [False, True])
def test_an_own_engine_that_says_words_of_no_token_is_not_believed(stream):
    """A last figure of zero, or one that came before the answer: it was free."""
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    outcome = whole("word " * 10, usage)
    if stream:
        outcome = AttemptOutcome("finished", 200, usage, usage_final=True, said_bytes=50)
    asked = attempt(stream=stream, events=9 if stream else 1, max_tokens=20, bound_pusd=10**15)
    found = charge(asked, outcome, now_s=12.0)
    assert (found.basis, found.disputed) == ("estimated", True)
    assert found.tokens == TokenCounts(input=500, output=asked.events)
    silent = (
        whole("", usage) if not stream else AttemptOutcome("finished", 200, usage, usage_final=True)
    )
    asked = attempt(stream=stream, events=0, max_tokens=20, bound_pusd=10**15)
    assert charge(asked, silent, now_s=12.0).basis == "reported"


SEARCH_FEE, PICTURE = "search_context_cost_per_query", "output_cost_per_image_token"
SHOWN = b'{"choices": [{"message": {"content": "Here.", "images": [{"type": "image_url"}]}}]}'


@pytest.mark.parametrize(
    ("more", "answer", "partly"),
    [
        ({}, b"{}", False),
        ({"unread": (SEARCH_FEE,)}, b"{}", False),
        ({"unread": (SEARCH_FEE,), "features": [Feature.HOSTED_TOOLS]}, b"{}", True),
        ({"unread": (PICTURE,)}, b"{}", True),
        ({"unread": ("input_cost_per_image",)}, b"{}", False),
        ({"unread": ("max_searches",)}, b"{}", False),
        ({}, SHOWN, True),
        ({}, b'{"choices": [{"message": {"content": "data:x;base64,AA", "images": []}}]}', False),
        ({}, b'{"choices": [{"message": {"content": [], "images": [{"b64": "AA"}]}}]}', True),
        ({}, b'{"choices": [{"message": {"content": "data:x;base64,AA"}}]}', False),
        ({}, b'{"choices": [{"message": {"content": "a", "images": []}}]}', False),
        ({"price": COMPLETE}, SHOWN, False),
        ({"price": COMPLETE}, b"{}", False),
    ],
)
def test_what_a_price_does_not_say_is_told_where_it_may_have_been_charged(more, answer, partly):
    outcome = AttemptOutcome("finished", 200, usage=USAGE, usage_final=True, answer=answer)
    assert api(outcome, **more).partly_priced is partly


@pytest.mark.parametrize(
    ("searches", "changes", "partly"),
    [
        (5, {}, True),
        (0, {}, False),
        (5, {"search_pusd": 7, "searches_limit": 9}, False),
        (5, {"complete": True}, False),
    ],
)
def test_searches_that_no_price_lists_may_have_been_charged(searches, changes, partly):
    price = msgspec.structs.replace(PRICE, terms=msgspec.structs.replace(PRICE.terms, **changes))
    usage = USAGE | {"num_search_queries": searches}
    outcome = AttemptOutcome("finished", 200, usage=usage, usage_final=True, answer=b"{}")
    assert api(outcome, price=price).partly_priced is partly


def test_of_sound_what_is_read_from_a_cache_may_cost_more():
    details = {"audio_tokens": 40}
    outcome = AttemptOutcome(
        "finished", 200, usage=USAGE | {"prompt_tokens_details": details}, usage_final=True
    )
    unread = ("cache_read_input_audio_token_cost",)
    assert api(outcome, unread=unread).partly_priced
    assert not api(outcome).partly_priced


def test_a_cost_that_a_header_states_is_claimed():
    tried = attempt(own=False, price=PRICE)
    outcome = AttemptOutcome("finished", 200, usage=USAGE, usage_final=True, answer=b"{}")
    tried.stated_cost = "0.5"
    charged = charge(tried, outcome, now_s=12.0)
    assert (charged.claimed_pusd, charged.cost_pusd) == (5 * 10**11, api(outcome).cost_pusd)
    refused = AttemptOutcome("rejected", 429, billable=False)
    assert charge(tried, refused, now_s=12.0).claimed_pusd is None


SEARCHED = msgspec.structs.replace(
    PRICE.terms, request_pusd=12_000,
    schedules=(TierRates("search-low", 0, PRICE.terms.rates, request_pusd=5_000),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("told", "asked", "tier", "fee"),
    [
        ("low", None, "search-low", 5_000), (None, b"low", "search-low", 5_000),
        ("high", b"low", None, 12_000), (None, None, None, 12_000),
    ],
)  # fmt: skip
def test_a_search_is_charged_by_the_depth_that_usage_tells(told, asked, tier, fee):
    usage = USAGE if told is None else {**USAGE, "search_context_size": told}
    outcome = AttemptOutcome("finished", 200, usage=usage, usage_final=True, tier="default")
    options = msgspec.Raw(b'{"search_context_size":"%b"}' % (asked or b""))
    members = {} if asked is None else {"web_search_options": options}
    price = msgspec.structs.replace(PRICE, terms=SEARCHED)
    found = api(outcome, price, members=members, asked_tier="search-low")
    assert (found.tier, found.cost_pusd, found.unknown_tier) == (tier, 2400 + fee, False)


def test_what_costs_nothing_owes_no_fee():
    outcome = AttemptOutcome("rejected", 429, billable=False)
    charged = api(outcome, unread=(PICTURE,))
    assert (charged.cost_pusd, charged.partly_priced) == (0, False)


@pytest.mark.parametrize(
    ("said", "unlisted", "flagged"),
    [
        (None, "", False),
        (None, "scale", True),
        ("default", "scale", False),
        ("scale", "scale", True),
    ],
)
def test_a_tier_that_was_asked_for_and_not_told_is_flagged(said, unlisted, flagged):
    outcome = AttemptOutcome("finished", 200, usage=USAGE, usage_final=True, tier=said)
    assert api(outcome, unlisted_tier=unlisted).unknown_tier is flagged


PICTURED = msgspec.structs.replace(
    PRICE.terms, rates=rates_from({"input": 1, "output": 2, "image_output": 30})
)
MADE = {"completion_tokens_details": {"image_tokens": 8}}


@pytest.mark.parametrize(
    ("terms", "more", "partly"),
    [(PICTURED, MADE, False), (PICTURED, {}, True), (PRICE.terms, MADE, True)],
)
def test_a_picture_is_priced_where_its_tokens_are_told_and_listed(terms, more, partly):
    price = msgspec.structs.replace(PRICE, terms=terms)
    outcome = AttemptOutcome("finished", 200, usage=USAGE | more, usage_final=True, answer=SHOWN)
    assert api(outcome, price=price).partly_priced is partly


def test_a_comparator_charges_a_ranking_by_its_searches() -> None:
    output = OutputMoments(0, 1.0, 1.0, 1.0)
    extent = RequestUnits(searches=3, searches_bound=3)
    request = RoutingRequest(RequestKind.RERANK, "m", 40, 160, 0, output, extent=extent)
    terms = PriceTerms(rates_from({"input": 0, "output": 0}), search_pusd=1_000)
    compared = Comparator(Price(1, "p/m", "t", 0, terms))
    tried = SimpleNamespace(plan=SimpleNamespace(request=request), own=True)
    assert compare_cost(tried, TokenCounts(input=40), compared).cost_pusd == 3_000
    assert compare_cost(tried, TokenCounts(), compared).cost_pusd == 0, "nothing was made"


@given(st.integers(0, 900), st.integers(0, 900), st.integers(0, 90))
def test_what_an_own_engine_had_cached_is_not_what_a_comparator_has(read, fresh, output) -> None:
    """Red before: the engine's own cache was counted at the comparator's price of cached tokens."""
    rates = rates_from({"input": 10, "cached": 1, "output": 40})
    price = Price(3, "p/m", "t", 0, PriceTerms(rates))
    request = SimpleNamespace(kind=RequestKind.CHAT)
    tokens = TokenCounts(input=fresh, cached=read, output=output)
    own = SimpleNamespace(plan=SimpleNamespace(request=request), own=True)
    cold = compare_cost(own, tokens, Comparator(price))
    assert (cold.cost_pusd, cold.cached_tokens or 0) == (10 * (read + fresh) + 40 * output, 0)
    half = compare_cost(own, tokens, Comparator(price, CachedPrompt(50, 50), 100))
    assert (half.cached_tokens or 0) == (read + fresh) // 2
    assert half.cost_pusd == cold.cost_pusd - 9 * (half.cached_tokens or 0)
    api = SimpleNamespace(plan=SimpleNamespace(request=request), own=False)
    told = compare_cost(api, tokens, Comparator(price))
    assert told.cost_pusd == cold.cost_pusd - 9 * read, "an API's cache is evidence of another's"


def test_of_a_chat_nothing_is_beyond_units_for_it_is_paid_in_tokens() -> None:
    """So a cost above its hold is cut and claimed, and not disputed for that alone."""
    held = _AttemptHold(attempt(own=False, price=PRICE))
    assert held.is_beyond_units(TokenCounts(input=10**9, output=10**9, searches=9)) is False
