"""Upper bound of an attempt's cost at a target, and the usage that it is expected to have."""

import math
from collections.abc import Collection

from gateway.fleet.prompt_bound import reachable_media
from gateway.kinds import KINDS
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, bound_pusd
from router.types import EngineState, RoutingRequest

OUTPUT_BOUND_TOKENS = 4096  # output limit of a model whose limit is unknown


def expected_tokens(request: RoutingRequest) -> TokenCounts:
    """Return the expected tokens: the prompt estimate and the mean output of similar requests.

    The output is at most what the client allows.
    """
    mean = request.output.mean
    if request.max_tokens is not None:
        mean = min(mean, request.max_tokens)
    units = KINDS[request.kind].units
    if units is not None:
        return units.estimate(request, round(mean))
    return TokenCounts(input=request.prompt_tokens, output=round(mean * request.n))


def output_bound(request: RoutingRequest) -> int:
    """Return the maximum output tokens of one choice, independent of the target."""
    return OUTPUT_BOUND_TOKENS if request.max_tokens is None else request.max_tokens


def api_bound_pusd(
    price: Price,
    request: RoutingRequest,
    output_tokens: int,
    *,
    allowance_tokens: int = 0,
    tiers: Collection[str] | None = None,
) -> int:
    """Return the maximum cost at an API for this many output tokens per choice, in pico-USD.

    `allowance_tokens` may be billed per choice on top of its limit. `tiers` are the service tiers
    in which the request can run, None for any priced tier.
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
    """Return the maximum cost of a request at an own engine, in pico-USD.

    The cost is engine-seconds times the hourly rate. The bound assumes that the request runs alone,
    where each token costs a full step; a share of a batch never costs more.
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
