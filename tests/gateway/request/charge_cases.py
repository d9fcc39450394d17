"""Attempts as they are charged: of an own engine or an API, with what their candidate knew."""

from functools import partial
from types import SimpleNamespace

import msgspec

from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from gateway.request.charging import charge as charge_by
from ledger.prices.book import Price, PriceTerms, TierRates, rates_from
from router.prompts import PromptPrefix
from router.request_kinds import RequestKind
from router.target_output import TargetOutput
from router.token_ratio import TokenRatio
from router.types import Feature, StepModel

GONE = AttemptOutcome("client_gone", 499)
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
STEP = StepModel(a_s=0.004, b_s=0.001, c_s=1e-8, d_s=1e-4, t0_s=0.05)
RATE = 3_600_000_000_007
PRICE = Price(
    version=1,
    name="openai/x",
    book="test",
    effective_from_us=0,
    terms=PriceTerms(
        rates_from({"input": 20, "output": 40}),
        (
            TierRates("flex", 0, rates_from({"input": 10, "output": 20})),
            TierRates("priority", 0, rates_from({"input": 40, "output": 80})),
        ),
    ),
)


COMPLETE = msgspec.structs.replace(PRICE, terms=msgspec.structs.replace(PRICE.terms, complete=True))
charge = partial(charge_by, ratio=TokenRatio(), target_output=TargetOutput())


def api(outcome, price=PRICE, **more):
    charged = charge(attempt(own=False, price=price, **more), outcome, now_s=12.0)
    assert charged.engine_us == 0, "nobody here pays for an API's time"
    return charged


def attempt(*, own=True, price=None, stream=False, max_tokens=None, verdict=None, events=0, **more):
    """Dispatched at 10 s to an engine that predicted 100 ms and then 5 ms a token."""
    engine = SimpleNamespace(step=STEP, step_feedback=1.0, kv_capacity_tokens=10_000)
    target = SimpleNamespace(
        own=own,
        name="p/m",
        rate_pusd_per_hour=RATE if own else None,
        features=frozenset({Feature.REASONING}),
        goes_on=more.get("goes_on", False),
        on_disconnect=more.get("on_disconnect", "unknown"),
    )
    frozen = SimpleNamespace(
        prompt_bound=lambda request: request.prompt_tokens_bound,
        target=target,
        price=price,
        candidate=SimpleNamespace(
            engine=engine if own else None, bound_pusd=0, output_cap=more.get("output_cap")
        ),
        open_end=more.get("open_end"),
        allowance_tokens=more.get("allowance_tokens", 0),
        unread=more.get("unread", ()),
        asked_tier=more.get("asked_tier", ""),
        unlisted_tier=more.get("unlisted_tier", ""),
        limits=more.get("limits"),
        prompt=None,
    )
    plan = SimpleNamespace(
        request_id="r",
        request=SimpleNamespace(
            kind=more.get("kind", RequestKind.CHAT),
            prompt_tokens=500,
            prompt_tokens_bound=2000,
            n=more.get("n", 1),
            max_tokens=max_tokens,
            features=frozenset(more.get("features", ())),
            has_sound=False,
            text_prompt=True,
            without_pictures=False,
            service_tier=more.get("asked_tier", ""),
            beginning=more.get("beginning", PromptPrefix()),
        ),
        learning_key=("m", "t"),
        asked=SimpleNamespace(
            stream=stream,
            prompt_bytes=1000,
            sound_tokens=more.get("sound_tokens", 0),
            features=frozenset(),
            members={"messages": b"x" * 2000, **more.get("members", {})},
        ),
    )
    seen = verdict or SimpleNamespace(ttft_ms=100.0, tpot_ms=5.0)
    made = Attempt(plan, SimpleNamespace(frozen=frozen, verdict=seen), 1, 10.0, holds=())
    made.events = events
    frozen.candidate.bound_pusd = more.get("bound_pusd", 0)
    return made
