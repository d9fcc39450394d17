"""The most that one attempt may be charged at a target, and what it is expected to use."""

import math
from collections.abc import Collection

from gateway.fleet.prompt_bound import reachable_media
from gateway.kinds import KINDS
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, bound_pusd
from router.types import EngineState, RoutingRequest

OUTPUT_BOUND_TOKENS = 4096  # the longest answer of a model whose limit nobody stated


def expected_tokens(request: RoutingRequest) -> TokenCounts:
    """The estimate, and the mean output of its like: never more than the client allows."""
    mean = request.output.mean
    if request.max_tokens is not None:
        mean = min(mean, request.max_tokens)
    units = KINDS[request.kind].units
    if units is not None:
        return units.estimate(request, round(mean))
    return TokenCounts(input=request.prompt_tokens, output=round(mean * request.n))


def output_bound(request: RoutingRequest) -> int:
    """The most output tokens one choice may produce, where no target is looked at."""
    return OUTPUT_BOUND_TOKENS if request.max_tokens is None else request.max_tokens


def api_bound_pusd(
    price: Price,
    request: RoutingRequest,
    output_tokens: int,
    *,
    allowance_tokens: int = 0,
    tiers: Collection[str] | None = None,
) -> int:
    """The most an API can charge with this many output tokens in each choice.

    `allowance_tokens`: of each choice, beside its limit; `tiers`: those that the request can run
    in, None for any that is priced.
    """
    units = KINDS[request.kind].units
    if units is not None:
        return units.bound_pusd(price, request, output_tokens)
    return bound_pusd(
        price,
        prompt_tokens=request.prompt_tokens_bound,
        output_tokens=(output_tokens + allowance_tokens) * request.n,
        tiers=tiers,
        media=reachable_media(request),
    )


def own_bound_pusd(
    rate_pusd_per_hour: int | None,
    state: EngineState,
    request: RoutingRequest,
    output_tokens: int,
) -> int:
    """The most an own request can be charged: its engine-seconds with this much output.

    Alone in the engine each token costs a full step, so no share of a batch exceeds this.
    """
    step = state.step
    if rate_pusd_per_hour is None or step is None:
        return 0
    prompt, output = request.prompt_tokens_bound, output_tokens * request.n
    seconds = (
        step.t0_s
        + step.d_s * prompt
        + output * (step.a_s + step.b_s + step.c_s * (prompt + output))
    )
    return math.ceil(seconds * state.step_feedback * rate_pusd_per_hour / 3600)
