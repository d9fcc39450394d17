"""Usage that its text does not show, and prompts that were told before an answer broke off."""

import msgspec
import pytest
from charge_cases import PRICE, api, attempt, charge
from msgspec.structs import replace

from gateway.kinds.outcome import REFUSED, AttemptOutcome
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, rates_from
from router.prompts import PromptPrefix
from router.target_output import EndedAnswer, TargetOutput
from router.types import Feature

THINKING = {"members": {"thinking": b'{"type": "enabled", "budget_tokens": 12000}'}}
SAID = "a short answer"


def ended(usage, text: str | None = SAID, *, stream: bool = False, **more) -> AttemptOutcome:
    """A whole answer of so much text."""
    if stream:
        said = len(text or "")
        return AttemptOutcome("finished", 200, usage, usage_final=True, said_bytes=said, **more)
    body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage}
    answer = msgspec.json.encode(body)
    return AttemptOutcome("finished", 200, usage, usage_final=True, answer=answer, **more)


def counted(output: int, **details: int) -> dict:
    usage = {"prompt_tokens": 40, "completion_tokens": output, "total_tokens": 40 + output}
    return {**usage, "completion_tokens_details": details or None}


HELD = 2000 * 40 + 16_000 * 80


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("usage", "text", "more"),
    [
        (counted(10_000), SAID, THINKING),  # Anthropic's compatible endpoint, Bedrock
        (counted(10_000, reasoning_tokens=500), SAID, THINKING),  # LiteLLM, of a summary
        (counted(10_000), None, {}),  # a filter withheld all of it
        (counted(10_000), "", THINKING),
    ],
)
def test_what_was_thought_or_withheld_is_booked_within_the_hold(usage, text, more, stream):
    """It was booked at 78 tokens, disputed, and narrowed no budget: twenty for the room of one."""
    outcome = ended(usage, text, stream=stream)
    found = api(outcome, stream=stream, max_tokens=16_000, bound_pusd=HELD, events=1, **more)
    if text is None and stream:
        found = api(outcome, stream=True, max_tokens=16_000, bound_pusd=HELD, events=0)
    assert (found.disputed, found.claimed_pusd, found.basis) == (False, None, "reported")
    assert (found.tokens.input, found.tokens.output) == (40, 10_000)
    assert found.cost_pusd == 40 * 20 + 10_000 * 40
    if more:
        assert found.tokens.reasoning == 10_000 - 64 - len(text or "")


def test_thoughts_that_nobody_counted_apart_cost_what_thoughts_cost():
    dear = Price(
        1, "p/m", "t", 0, PriceTerms(rates_from({"input": 1, "output": 4, "reasoning": 6}))
    )
    found = api(ended(counted(1_000), "x" * 36), max_tokens=2_000, price=dear)
    assert found.cost_pusd == 40 + 100 * 4 + 900 * 6


def test_a_figure_of_the_beginning_does_not_hide_thoughts_that_nobody_counted_apart():
    earlier = ({"prompt_tokens": 40, "completion_tokens": 1},)
    outcome = ended(counted(10_000), stream=True, earlier_usage=earlier)
    found = api(outcome, stream=True, events=1, max_tokens=16_000, bound_pusd=HELD, **THINKING)
    assert (found.tokens.output, found.disputed) == (10_000, False)


@pytest.mark.parametrize("members", [{}, {"thinking": b'{"type": "disabled"}'}])
def test_of_a_model_that_does_not_think_it_is_disputed_and_narrows_by_no_more_than_the_hold(
    members,
):
    known = TargetOutput()
    asked = attempt(own=False, price=PRICE, max_tokens=16_000, bound_pusd=HELD, members=members)
    found = charge(asked, ended(counted(10_000)), now_s=12.0, target_output=known)
    whole = 40 * 20 + 10_000 * 40
    assert (found.disputed, found.tokens.output) == (True, 64 + len(SAID))
    assert (found.claimed_pusd, found.cost_pusd + found.plausible_pusd) == (whole, whole)
    far = charge(asked, ended(counted(5_000_000)), now_s=12.0)
    assert far.cost_pusd + far.plausible_pusd <= HELD < far.claimed_pusd
    assert far.plausible_pusd == (16_000 - 64 - len(SAID)) * 40
    known.observe("p/m", EndedAnswer(900, 800, 10, 1.0, 2.0), 0.0, team="t")  # it was seen to think
    assert not charge(asked, ended(counted(10_000)), now_s=12.0, target_output=known).disputed


def test_beyond_the_hold_hidden_thoughts_are_not_believed_whatever_was_asked():
    found = api(ended(counted(50_000)), max_tokens=16_000, bound_pusd=HELD, **THINKING)
    assert found.disputed
    assert found.cost_pusd + found.plausible_pusd <= HELD < found.claimed_pusd


UNREADABLE = [
    None,
    {"prompt_tokens": "10", "completion_tokens": "20000"},
    {"prompt_tokens": 10, "completion_tokens": 20_000.5},
    {"prompt_tokens": -10, "completion_tokens": 20_000},
    {"prompt_tokens": 10, "completion_tokens": 10**9},
]


@pytest.mark.parametrize("usage", UNREADABLE)
@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_was_asked_to_think_has_thought_though_nobody_counted_it(usage, stream):
    """It was booked at one token."""
    outcome = ended(usage, "hi", stream=stream)
    asked = {"stream": stream, "max_tokens": 16_000, "bound_pusd": HELD, "events": 1, **THINKING}
    found = api(outcome, **asked)
    assert (found.cost_pusd, found.basis, found.unseen) == (HELD, "bound", True)
    assert found.disputed is (usage is not None)
    known = TargetOutput()
    known.observe("p/m", EndedAnswer(100, 0, 400, None, 1.0), 0.0)
    known_rate = charge(
        attempt(own=False, price=PRICE, **asked), outcome, now_s=12.0, target_output=known
    )
    assert (known_rate.tokens.output, known_rate.unseen) == (1 + 2 * 100 * 2, False)
    plain = api(outcome, **{**asked, "members": {}})
    assert (plain.tokens.output, plain.unseen) == (1, False), "all that it made came"


def test_a_stream_that_broke_off_while_its_model_thought_is_no_bargain():
    broken = AttemptOutcome("upstream_error", 502, error="upstream_broken")
    asked = {"stream": True, "max_tokens": 16_000, "bound_pusd": HELD}
    found = api(broken, **asked, **THINKING)
    assert (found.cost_pusd, found.unseen) == (HELD, True)
    assert api(broken, **asked).tokens == TokenCounts(input=500)


CACHED = Price(
    1, "anthropic/m", "t", 0,
    PriceTerms(rates_from({"input": 3000, "output": 15000, "cache_write": 3750, "cached": 300})),
)  # fmt: skip
ENDS = [
    AttemptOutcome("client_gone", 499, said_bytes=80),
    AttemptOutcome("upstream_error", 502, error="upstream_broken", said_bytes=80),
]


@pytest.mark.parametrize("outcome", ENDS)
@pytest.mark.parametrize(
    ("usage", "pusd"),
    [
        ({"prompt_tokens": 490, "prompt_tokens_details": {"cached_tokens": 480}},
         10 * 3000 + 480 * 300),
        ({"prompt_tokens": 1900, "cache_creation_input_tokens": 1000}, 900 * 3000 + 1000 * 3750),
    ],
)  # fmt: skip
def test_the_prompt_that_was_told_is_booked_though_the_answer_broke_off(outcome, usage, pusd):
    """Only the output is estimated; the prompt was, too: 1,900 tokens were booked as 500."""
    told = msgspec.structs.replace(outcome, usage={**usage, "completion_tokens": 1})
    found = api(told, price=CACHED, stream=True, events=20, max_tokens=100)
    assert found.cost_pusd == pusd + 20 * 15_000
    assert (found.basis, found.disputed) == ("estimated", False)


@pytest.mark.parametrize(("features", "prompt"), [((), 490), ([Feature.HOSTED_TOOLS], 2000)])
def test_at_its_bound_an_answer_has_the_prompt_that_was_told_unless_tools_add_to_it(
    features, prompt
):
    usage = {"prompt_tokens": 490, "completion_tokens": 1, "total_tokens": 491}
    gone = AttemptOutcome("client_gone", 499, usage, said_bytes=80)
    more = {"stream": True, "events": 20, "max_tokens": 100, "goes_on": True}
    found = api(gone, price=CACHED, features=features, **more)
    assert (found.tokens.whole_prompt, found.tokens.output) == (prompt, 100)
    assert (found.basis, found.unseen) == ("bound", True)


def test_a_prompt_that_cannot_be_is_estimated():
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    gone = AttemptOutcome("client_gone", 499, usage, said_bytes=80)
    asked = attempt(own=False, price=PRICE, stream=True, events=20, max_tokens=100)
    asked.plan.asked.prompt_bytes = 2000
    asked.plan.asked.members = {"messages": b'[{"content": "' + b"x " * 1000 + b'"}]'}
    assert charge(asked, gone, now_s=12.0).tokens.input == 500


@pytest.mark.parametrize(
    ("asked", "said", "rates", "tier"),
    [
        ("priority", None, (40, 80), "priority"),
        ("flex", None, (10, 20), "flex"),
        ("priority", "default", (20, 40), "standard"),
        ("", None, (20, 40), None),
    ],
)
def test_an_answer_that_names_no_tier_ran_in_the_one_that_was_asked_for(asked, said, rates, tier):
    """It was booked at half the price of `priority`, and at twice that of `flex`."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    found = api(ended(usage, tier=said), asked_tier=asked)
    assert (found.cost_pusd, found.tier) == (100 * rates[0] + 10 * rates[1], tier)
    assert not found.unknown_tier


def test_output_that_an_error_took_the_place_of_is_no_thought() -> None:
    """It was booked as thoughts, which cost half as much here."""
    cheap = Price(
        1, "p/m", "t", 0, PriceTerms(rates_from({"input": 1, "output": 4, "reasoning": 2}))
    )
    failed = AttemptOutcome(
        "upstream_error", 502, counted(1_000), usage_final=True, error="upstream_broken"
    )
    found = api(failed, max_tokens=2_000, price=cheap)
    assert (found.cost_pusd, found.disputed) == (40 + 1_000 * 4, False)


@pytest.mark.parametrize(
    ("behind", "output", "basis"), [(False, 40, "continuous"), (True, 500, "estimated")]
)
def test_a_figure_that_words_came_behind_is_of_the_beginning(behind, output, basis) -> None:
    outcome = AttemptOutcome("finished", 200, counted(40), said_bytes=2000, usage_behind=behind)
    found = api(outcome, stream=True, max_tokens=16_000, bound_pusd=HELD, events=2)
    assert (found.tokens.input, found.tokens.output, found.basis) == (40, output, basis)


@pytest.mark.parametrize(("unreadable", "cost"), [(False, 500 * 20), (True, HELD)])
def test_a_stream_that_nobody_can_read_is_booked_at_its_bound(unreadable, cost) -> None:
    """Red before: a compressed one cost its prompt, whatever was made."""
    outcome = AttemptOutcome("upstream_error", 502, error="bad_answer", unreadable=unreadable)
    found = api(outcome, stream=True, max_tokens=16_000, bound_pusd=HELD)
    assert found.cost_pusd == cost
    assert found.unseen is unreadable


HEARD = msgspec.json.encode(
    {"choices": [{"message": {"content": None, "audio": {"data": "A" * 400_000}}}]}
)
SEEN = msgspec.json.encode(
    {"choices": [{"message": {"content": None, "images": [{"image_url": {"url": "data:"}}]}}]}
)


@pytest.mark.parametrize(
    ("whole", "streamed"),
    [({"answer": HEARD}, {"spoken": True}), ({"answer": SEEN}, {"shown": True})],
    ids=["sound", "pictures"],
)
def test_sound_and_pictures_that_nobody_counted_are_booked_at_the_hold(whole, streamed) -> None:
    """Red before: minutes of sound, or a picture, were one token without a mark."""
    for stream, came in ((False, whole), (True, streamed)):
        outcome = AttemptOutcome("finished", 200, **came)
        found = api(outcome, stream=stream, max_tokens=2_000, bound_pusd=HELD)
        assert (found.tokens.output, found.basis, found.unseen) == (2_000, "bound", True)
        told = replace(outcome, usage=counted(300), usage_final=True)
        assert not api(told, stream=stream, max_tokens=2_000, bound_pusd=HELD).unseen
    words = AttemptOutcome("finished", 200, said_bytes=40, answer=None)
    assert not api(words, stream=True, max_tokens=2_000, bound_pusd=HELD).unseen


def test_sound_has_more_than_a_token_for_seconds() -> None:
    """Red before: 300 KB of it were believed to be one."""
    outcome = AttemptOutcome("finished", 200, counted(1), usage_final=True, answer=HEARD)
    assert api(outcome, max_tokens=2_000, bound_pusd=HELD).disputed
    honest = replace(outcome, usage=counted(125))
    assert not api(honest, max_tokens=2_000, bound_pusd=HELD).disputed


def test_sound_that_was_counted_as_text_is_partly_priced_where_it_has_a_price() -> None:
    dear = Price(
        1, "p/m", "t", 0, PriceTerms(rates_from({"input": 1, "output": 4, "audio_output": 32}))
    )
    spoke = AttemptOutcome("finished", 200, counted(125), usage_final=True, answer=HEARD)
    told = replace(spoke, usage=counted(125, audio_tokens=125))
    for outcome, price, marked in ((spoke, dear, True), (told, dear, False), (spoke, None, False)):
        more = {} if price is None else {"price": price}
        found = api(outcome, max_tokens=2_000, bound_pusd=HELD, **more)
        assert found.partly_priced is marked


def test_a_prompt_that_no_target_can_have_read_is_disputed_though_the_output_can_be() -> None:
    told = {**counted(4), "prompt_tokens": 20_000_000, "total_tokens": 20_000_004}
    found = api(ended(told), max_tokens=2_000, bound_pusd=HELD)
    assert (found.disputed, found.basis, found.tokens.output) == (True, "bound", 4)
    assert found.claimed_pusd > HELD


LISTED = rates_from(
    {"input": 20, "output": 40, "cache_write": 25, "cache_write_1h": 50, "audio_input": 800}
)
KINDS_APART = Price(1, "openai/x", "test", 0, PriceTerms(LISTED))


@pytest.mark.parametrize(
    ("more", "prompt_pusd"),
    [
        ({}, 500 * 20),
        ({"beginning": PromptPrefix(kept_s=300)}, 500 * 25),
        ({"beginning": PromptPrefix(kept_s=3600)}, 500 * 50),
        ({"sound_tokens": 100}, 400 * 20 + 100 * 800),
        ({"sound_tokens": 900}, 500 * 800),
        ({"sound_tokens": 100, "beginning": PromptPrefix(kept_s=300)}, 400 * 25 + 100 * 800),
    ],
)
def test_a_prompt_that_nobody_told_of_costs_as_the_kinds_that_it_may_be(more, prompt_pusd) -> None:
    """Red before: sound and what is written to a cache were booked as text was."""
    left = AttemptOutcome("client_gone", 499)
    assert api(left, KINDS_APART, stream=True, events=3, **more).cost_pusd == prompt_pusd + 3 * 40
    failed = AttemptOutcome("upstream_error", 500, error="server_error")
    assert api(failed, KINDS_APART, **more).cost_pusd == prompt_pusd


def test_a_refusal_that_was_read_costs_its_prompt() -> None:
    refused = AttemptOutcome("rejected", 400, error=REFUSED)
    for stream in (False, True):
        bill = api(refused, stream=stream)
        assert (bill.basis, bill.tokens) == ("estimated", TokenCounts(input=500))
        assert api(replace(refused, billable=False), stream=stream).cost_pusd == 0


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("told", [{"completion_tokens": 0}, {}])
def test_a_prompt_that_is_only_scored_costs_the_prompt(told, stream, own) -> None:
    """Red before: its echo counted as output that nobody reported, and its prompt was guessed."""
    usage = {"prompt_tokens": 40, "total_tokens": 40, **told}
    scored = {"members": {"echo": b"true", "max_tokens": b"0"}}
    for said, is_echo in ((1000, True), (1040, False)):  # its prompt has 1000 bytes
        outcome = ended(usage, "x" * said, stream=stream)
        asked = {"stream": stream, "max_tokens": 1, "events": int(stream), "bound_pusd": HELD}
        tried = attempt(own=own, price=PRICE, **asked, **scored)
        tried.plan.asked.n = 1
        found = charge(tried, outcome, now_s=12.0)
        assert (found.basis == "reported") is is_echo, "the rest is output"
        assert found.disputed is not is_echo
        if is_echo:
            assert (found.tokens.input, found.tokens.output) == (40, 0)
