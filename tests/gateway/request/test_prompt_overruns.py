"""What a prompt's usage beyond its bound teaches: of which part, how much, and when nothing."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.prompt_bound import TargetPrompt, prompt_bound
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from gateway.request.charging import charge
from gateway.request.prompt_overruns import prompt_overrun_of
from ledger.journals.records import TokenCounts
from ledger.prices.rates import Price, PriceTerms, bound_pusd, rates_from
from router.request_kinds import RequestKind
from router.target_output import TargetOutput
from router.target_prompts import (
    CONTEXT_LIMIT_TOKENS,
    PICTURE_LIMIT_TOKENS,
    SOUND_FACTOR_LIMIT,
    PromptOverrun,
    TargetPrompts,
)
from router.token_ratio import TokenRatio
from router.types import Feature, OutputMoments, RoutingRequest

PRICE = Price(1, "p/m", "test", 0, PriceTerms(rates_from({"input": 2, "output": 9})))
TEXT = TargetPrompt(464, 0, 0, 0, has_files=False, context=0)  # 400 bytes, estimated at 100 tokens
PICTURED = TEXT._replace(pictures=2_000, parts=1)
HEARD = TEXT._replace(sounds=600)


def attempt(prompt, *, kind=RequestKind.CHAT, features=frozenset(), held_pusd=0) -> Attempt:
    moments = OutputMoments(0, 1.0, 1.0, 1.0)
    request = RoutingRequest(kind, "m", 10, 10, 10, moments, 1, frozenset(features))
    asked = SimpleNamespace(
        prompt_bytes=1_400, picture_bytes=1_000, sound_tokens=0, stream=True,
        features=request.features,
        members={"messages": b"x" * 1_400},
    )  # fmt: skip
    frozen = SimpleNamespace(
        prompt=prompt,
        prompt_bound=lambda _: prompt_bound(request, prompt or PICTURED),
        target=SimpleNamespace(own=False, name="p/m", goes_on=True, features=frozenset()),
        price=PRICE,
        candidate=SimpleNamespace(engine=None, bound_pusd=held_pusd, output_cap=None),
        open_end=None, allowance_tokens=0, unread=(), asked_tier="", unlisted_tier="",
        limits=None,
    )  # fmt: skip
    plan = SimpleNamespace(request_id="r", request=request, asked=asked, learning_key=("m", "t"))
    return Attempt(plan, SimpleNamespace(frozen=frozen), 1, 10.0, holds=())


@pytest.mark.parametrize(
    ("prompt", "told", "overrun"),
    [
        (None, {"input": 9_000_000}, None),
        (PICTURED, {"input": 2_464}, None),
        (PICTURED, {"input": 2_465}, PromptOverrun(pictures=2_365 / 2_000)),
        (PICTURED, {"input": 100, "cached": 8_000}, PromptOverrun(pictures=4.0)),
        (PICTURED, {"input": 8_100, "searches": 1}, None),
        # An icon, in tokens of a small picture.
        (TEXT._replace(pictures=1, parts=1), {"input": 600}, PromptOverrun(pictures=0.5)),
        (HEARD, {"input": 2_500}, PromptOverrun(sounds=4.0)),
        (TEXT._replace(sounds=1), {"input": 1_000}, PromptOverrun(sounds=900.0)),
        (HEARD, {"input": 100, "audio_input": 1_200}, PromptOverrun(sounds=2.0)),
        (PICTURED._replace(sounds=600), {"input": 100, "audio_input": 9_000},
         PromptOverrun(sounds=15.0)),
        (PICTURED._replace(sounds=600), {"input": 8_100, "audio_input": 300},
         PromptOverrun(pictures=4.0)),
        (PICTURED._replace(sounds=500), {"input": 5_100}, PromptOverrun(2.0, 2.0)),
        # The context was too small, and each part was within its bound.
        (PICTURED._replace(context=1_000), {"input": 1_500}, PromptOverrun(context=1_500)),
        (PICTURED._replace(context=9_000), {"input": 12_100}, PromptOverrun(6.0, 0.0, 12_100)),
        (TEXT._replace(text=9_000, context=8_000), {"input": 8_500}, PromptOverrun(context=8_500)),
        (TEXT._replace(has_files=True), {"input": 900_000}, None),
        (TEXT._replace(has_files=True), {"input": 1_100_000}, PromptOverrun(context=1_100_000)),
        (PICTURED._replace(has_files=True, context=9_000), {"input": 12_000},
         PromptOverrun(context=12_000)),
    ],
)  # fmt: skip
def test_the_part_that_was_exceeded_has_the_overrun(prompt, told, overrun) -> None:
    assert prompt_overrun_of(attempt(prompt), TokenCounts(**told), TokenRatio()) == overrun


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": RequestKind.RERANK},  # charged by units
        {"features": frozenset((Feature.HOSTED_TOOLS,))},  # what its tools found is read, too
    ],
)
def test_what_was_read_for_another_reason_teaches_nothing(changes) -> None:
    told = TokenCounts(input=50_000)
    assert prompt_overrun_of(attempt(PICTURED), told, TokenRatio()) is not None
    assert prompt_overrun_of(attempt(PICTURED, **changes), told, TokenRatio()) is None


prompts = st.builds(
    TargetPrompt,
    text=st.integers(100, 50_000),
    pictures=st.integers(1, 100_000),
    parts=st.integers(1, 20),
    sounds=st.sampled_from((0, 0, 50, 3_000)),
    has_files=st.booleans(),
    context=st.sampled_from((0, 8_000, 200_000)),
    apart=st.just(0),
)


@given(prompts, st.integers(1, 3_000_000), st.sampled_from((0, 0, 100, 9_000)))
def test_the_next_such_prompt_is_held_for_as_far_as_any_model_counts(prompt, billed, heard) -> None:
    """Red before: its surplus was claimed again each time."""
    heard = min(heard, billed) if prompt.sounds else 0
    tokens, made = TokenCounts(input=billed - heard, audio_input=heard), attempt(prompt)
    overrun, learned = prompt_overrun_of(made, tokens, TokenRatio()), TargetPrompts()
    stated = prompt_bound(made.plan.request, prompt)
    assert (overrun is None) == (billed <= stated)
    if overrun is not None:
        learned.observe("p/m", overrun, 1.0)
    raised = prompt_bound(made.plan.request, prompt, learned.overrun("p/m"))
    most = prompt.text + max(prompt.pictures, prompt.parts * PICTURE_LIMIT_TOKENS)
    most = max(most + prompt.sounds * SOUND_FACTOR_LIMIT, CONTEXT_LIMIT_TOKENS)
    assert stated <= raised <= most
    within = overrun is None or (
        overrun.pictures * max(prompt.pictures, 1_000 * prompt.parts)
        <= max(prompt.pictures, prompt.parts * PICTURE_LIMIT_TOKENS)
        and overrun.pictures <= 50.0
        and overrun.sounds <= SOUND_FACTOR_LIMIT
        and overrun.context <= CONTEXT_LIMIT_TOKENS
    )
    if within:
        assert billed <= raised


@pytest.mark.parametrize(
    ("told", "changes", "overrun"),
    [
        (2_464, {}, None),
        (8_100, {}, PromptOverrun(pictures=4.0)),
        (8_100, {"features": ()}, None),  # of a text that is disputed
        (8_100, {"prompt": None}, None),
        (20_000_000, {}, None),  # more than any context
    ],
)
def test_a_prompt_beyond_its_bound_is_booked_within_the_hold_and_teaches(told, changes, overrun):
    """Red before: the surplus was claimed, and nobody learned of it."""
    usage = {"prompt_tokens": told, "completion_tokens": 10}
    outcome = AttemptOutcome("finished", 200, usage, usage_final=True, said_bytes=40)
    held = bound_pusd(PRICE, prompt_tokens=2_464, output_tokens=10)
    for room in (held, 10**12):  # the rest of a hold may have room for it, too
        more = {"features": (Feature.IMAGES,), "prompt": PICTURED, "held_pusd": room} | changes
        found = charge(attempt(**more), outcome, TokenRatio(), TargetOutput(), now_s=12.0)
        assert found.cost_pusd <= room
        assert found.prompt_overrun == overrun
        if room == held:
            assert (found.claimed_pusd is None) == (told <= 2_464)


@pytest.mark.parametrize(
    "outcome",
    [
        AttemptOutcome("client_gone", 499),
        AttemptOutcome("finished", 200, None, said_bytes=40),
    ],
)
def test_a_bound_that_is_booked_teaches_nothing(outcome):
    made = attempt(PICTURED._replace(pictures=9_000), features=(Feature.IMAGES,))
    made.step.frozen.prompt = PICTURED  # before it was raised
    assert charge(made, outcome, TokenRatio(), TargetOutput(), now_s=12.0).prompt_overrun is None
