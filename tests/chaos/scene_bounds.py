"""B2: whatever a price lists and whatever is asked, a target that takes all of it stays within.

Prices are generated with tiers, thresholds, caches, thinking, fees and uplifts; the target says
the most that the request let it use, of the dearest kind, in every tier. Settling costs no more
than was held.
"""

import random

from scene import Given, Scene, SceneFigures

from gateway.fleet.attempt_bounds import api_bound_pusd
from ledger.journals.records import TokenCounts
from ledger.prices.book import (
    Price,
    PriceTerms,
    TierRates,
    bound_pusd,
    check,
    rates_from,
    tier_cost_pusd,
)
from ledger.prices.quotes import PriceQuote
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

CASES = 100_000
TIERS = ("flex", "priority", "batch")
ABOVE = (0, 1_000, 128_000, 200_000, 272_000)
EVERY = (None, "auto", "standard", "flex", "priority", "batch", "fast", "unheard-of")
INPUTS = ("input", "cached", "cache_write", "cache_write_1h")
OUTPUTS = (0, 1, 16, 500, 4_096, 128_000)


def rates(rng: random.Random):
    listed = {"input": rng.randrange(50_000_000), "output": rng.randrange(200_000_000)}
    for kind in ("cached", "cache_write", "cache_write_1h", "reasoning"):
        if rng.random() < 0.4:
            listed[kind] = rng.randrange(200_000_000)
    return rates_from(listed)


def price(rng: random.Random, number: int) -> Price:
    places = {("standard", above) for above in ABOVE[1:] if rng.random() < 0.3}
    for tier in TIERS:
        if rng.random() < 0.4:
            places |= {(tier, 0), *((tier, above) for above in ABOVE[1:] if rng.random() < 0.2)}
    terms = PriceTerms(
        rates(rng),
        tuple(TierRates(tier, above, rates(rng)) for tier, above in sorted(places)),
        request_pusd=rng.choice((0, rng.randrange(10**11))),
        uplift_ppm=rng.choice((0, 100_000, 123_457)),
        inclusive=rng.random() < 0.5,
    )
    return Price(number, "up/m", "chaos", 0, terms)


def request(rng: random.Random) -> RoutingRequest:
    edge = rng.choice(ABOVE) + rng.choice((-1, 0, 1, 2, 64))
    prompt = max(1, rng.choice((edge, rng.randrange(1, 400_000))))
    moments = OutputMoments(count=1, mean=1.0, mean_square=1.0, p95=1.0)
    return RoutingRequest(
        RequestKind.CHAT, "m", max(1, prompt // 4), prompt, rng.choice(OUTPUTS), moments,
        rng.choice((1, 1, 2, 8)),
    )  # fmt: skip


def uses(rng: random.Random, asked: RoutingRequest, terms: PriceTerms):
    """The most of each kind; and just beside each threshold, where other rates begin."""
    prompt, output = asked.prompt_tokens_bound, (asked.max_tokens or 0) * asked.n
    sizes = {prompt}
    for step in terms.schedules:
        sizes |= {step.above_tokens + beside for beside in (-1, 0, 1)}
    for size in sorted(each_size for each_size in sizes if 0 <= each_size <= prompt):
        for kind in INPUTS:
            yield TokenCounts(**{kind: size}, output=output, reasoning=0)
            yield TokenCounts(**{kind: size}, output=output, reasoning=output)
        parts = sorted(rng.randint(0, size) for _ in range(3))
        whole = zip(INPUTS, (*parts, size), (0, *parts), strict=True)
        mixed = {kind: end - start for kind, end, start in whole}
        yield TokenCounts(**mixed, output=output, reasoning=rng.randint(0, output))


def play(given: Given) -> SceneFigures:
    rng, found = given.rng, SceneFigures(overspent_pusd=0)
    cases = given.of(CASES)
    settles = beyond = 0
    for number in range(cases):
        this_price = price(rng, number)
        while check(this_price):
            this_price = price(rng, number)
        asked = request(rng)
        held = min(_holds(this_price, asked, broken=given.broken))
        for tokens in uses(rng, asked, this_price.terms):
            for tier in EVERY:
                settles += 1
                cost, _ = tier_cost_pusd(tokens, this_price, tier)
                if cost > held:
                    beyond += 1
                    found.overspent_pusd = max(found.overspent_pusd or 0, cost - held)
        if (number + 1) % 10_000 == 0:
            given.say(f"{number + 1} of {cases} cases, {settles} settles")
    found.size = f"{cases} prices and requests, {settles} settles"
    found.expect("settles above their hold", beyond, holds=beyond == 0)
    return found


def _holds(price: Price, asked: RoutingRequest, *, broken: bool) -> tuple[int, ...]:
    """By each of the ways in which a hold is made of a price."""
    output = asked.max_tokens or 0
    if broken:  # as if every answer came in the standard tier
        prompt = asked.prompt_tokens_bound
        return (bound_pusd(price, prompt_tokens=prompt, output_tokens=output * asked.n,
                           tiers=("standard",)),)  # fmt: skip
    quoted = PriceQuote(price).bound_pusd(asked.prompt_tokens_bound, output * asked.n)
    return api_bound_pusd(price, asked, output), quoted


SCENES = (
    Scene(
        "B2", "B2", "prices, and requests that are used to their utmost", play,
        "holds in the standard tier alone", databases=("sqlite",),
    ),
)  # fmt: skip
