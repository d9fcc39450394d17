"""The charge of an attempt: an API's tokens at its price, or an own engine's time.

`booked_usage` decides what was used, `usage_bill` what is booked and claimed. Where nothing bounds
an API's output, the hold's bound is booked and marked `unseen`, as for a lost attempt. Booking less
would let a client exceed a hard budget by disconnecting. `basis` lets reconciliation see how a
charge was made. An own engine's time follows from its tokens by the step model. If it reported none
before it was stopped, the elapsed time bounds it: an engine stops on request, but its prefill until
then kept other requests waiting.
"""

import msgspec
from msgspec.structs import replace

from backends.answer_media import has_picture_part, has_sound
from gateway.fleet.comparators import Comparator, compared_cost_pusd
from gateway.fleet.prompt_bound import reachable_media
from gateway.kinds import KINDS
from gateway.kinds.billable_units import AUDIO_MS_PER_TOKEN, billed_counts
from gateway.kinds.hosted_tools import asked_depth
from gateway.kinds.kind_usage import SentRequest, complete_counts, usage_of
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.service_tiers import told_tier
from gateway.request.attempt import Attempt
from gateway.request.booked_usage import NO_TOKENS, BookedUsage, api_usage, own_usage
from gateway.request.engine_progress import engine_time_s, estimate_progress, is_interrupted
from gateway.request.leg_charges import busy_us, legs_of
from gateway.request.limit_overruns import LimitOverrun, overrun_of
from gateway.request.plausible_claims import plausible_claim
from gateway.request.prompt_overruns import prompt_overrun_of
from gateway.request.reported_usage import bounded_request, bounds_of, context_of
from gateway.request.usage_bill import BillTerms, bill_usage
from gateway.request.usage_checks import fitting_tokens, least_of
from ledger.accounts import provisional_charge_pusd
from ledger.journals.records import AttemptLeg, Basis, ComparedCost, TokenCounts
from ledger.journals.token_kinds import PER_UNIT
from ledger.prices.book import STANDARD, Price, cost_pusd
from ledger.prices.rates import ReachableMedia, is_unlisted
from ledger.prices.search_depths import charged_depth, has_depths
from ledger.prices.unread_terms import charged_terms
from ledger.usage import has_unread
from ledger.usage_figures import figures_of
from router.target_output import TargetOutput
from router.target_prompts import PromptOverrun
from router.token_ratio import TokenRatio


class AttemptCharge(msgspec.Struct, frozen=True):
    """Tokens, basis, engine time and cost of an attempt.

    `cost_pusd` is None without a price or a rate. `tier` is what the answer named, else the
    requested tier where the price lists it. A charge at the hold's bound has the dearest tier, as
    the hold had.
    """

    tokens: TokenCounts
    basis: Basis
    engine_us: int
    cost_pusd: int | None
    tier: str | None = None
    unknown_tier: bool = False  # the price does not list it: booked at standard rates
    disputed: bool = False  # the target reported impossible figures
    claimed_pusd: int | None = None  # cost of the target's own figures, if above the hold
    partly_read: bool = False  # the target's usage has unknown counts
    overrun: LimitOverrun | None = None  # output above the hold, if something is learned from it
    partly_priced: bool = False  # a charge may apply that the price does not state
    unseen: bool = False  # output is unknown, and the hold's bound is booked
    plausible_pusd: int | None = None  # possible part of the claim above the cost
    prompt_overrun: PromptOverrun | None = None  # prompt above its bound, if it is learned from
    legs: tuple[AttemptLeg, ...] = ()  # if two engines took part


def charge(
    attempt: Attempt,
    outcome: AttemptOutcome,
    ratio: TokenRatio,
    target_output: TargetOutput,
    *,
    now_s: float,
) -> AttemptCharge:
    """Return the attempt's charge at its end; `ratio` gives the tokens of a text.

    `target_output` is what was learned of output that targets do not show.
    """
    request = attempt.plan.request
    spec = KINDS[request.kind]
    if spec.units is not None:
        price = attempt.step.frozen.price
        asked = attempt.plan.asked
        sent = None
        if not attempt.own:
            stops = not attempt.goes_on
            sent = SentRequest(asked.members, context_of(attempt), stops=stops)
        request = bounded_request(attempt)
        used = BookedUsage(*usage_of(spec, spec.units, request, price, outcome, sent=sent))
    elif attempt.own:
        used = own_usage(attempt, outcome)
    else:
        used = api_usage(attempt, outcome, ratio, target_output, now_s=now_s)
    if attempt.own:
        return _of_own(attempt, outcome, used, now_s)
    bill = _of_api(attempt, outcome, used)
    if used.unseen or (used.basis == "bound" and (outcome.is_given_up or outcome.is_silent)):
        return replace(bill, unseen=True)
    beyond = attempt.step.frozen.prompt is not None and used.basis == "reported"
    if beyond and not used.disputed:
        prompt_overrun = prompt_overrun_of(attempt, used.tokens, ratio)
        return bill if prompt_overrun is None else replace(bill, prompt_overrun=prompt_overrun)
    return bill


def compare_cost(attempt: Attempt, tokens: TokenCounts, comparator: Comparator) -> ComparedCost:
    """Return what a comparator would have charged, by its list price.

    Cached tokens of an own engine do not count as cached at the comparator; those of an API do.
    """
    price, request = comparator.price, attempt.plan.request
    if tokens == NO_TOKENS:
        return ComparedCost(price.name, price.version, 0)
    units = KINDS[request.kind].units
    if units is not None:
        tokens = complete_counts(tokens, price, units.estimate(request, tokens.output))
        return ComparedCost(price.name, price.version, units.cost_pusd(tokens, price, request))
    if attempt.own:
        pusd, cached = compared_cost_pusd(tokens, comparator)
    else:
        pusd, cached = cost_pusd(tokens, price), tokens.cached
    return ComparedCost(price.name, price.version, pusd, cached_tokens=cached)


def _of_own(
    attempt: Attempt, outcome: AttemptOutcome, used: BookedUsage, now_s: float
) -> AttemptCharge:
    tokens, basis, disputed = used.tokens, used.basis, used.disputed
    engine, units = attempt.step.frozen.candidate.engine, KINDS[attempt.plan.request.kind].units
    if engine is None or engine.step is None or not (units is None or units.engine_work):
        return AttemptCharge(tokens, basis, 0, _own_cost_of(attempt, 0), disputed=disputed)
    # Sound is charged at the rate measured for its engine, which includes its text.
    heard = tokens.audio_ms / AUDIO_MS_PER_TOKEN
    said = 0 if heard else tokens.output
    engine_s = engine_time_s(engine, engine.step, tokens.input + tokens.cache_write + heard, said)
    if is_interrupted(outcome, tokens):
        begun, engine_s = estimate_progress(attempt, engine, engine.step, now_s)
        tokens = begun if units is None else tokens
    engine_us = round(engine_s * 1e6)
    legs: tuple[AttemptLeg, ...] = ()
    if attempt.prefill is not None:
        prompt = tokens.input + tokens.cache_write + tokens.cached
        legs = legs_of(attempt, outcome, prompt, engine_s, now_s)
        engine_us = busy_us(legs) if legs else engine_us
    cost = _own_cost_of(attempt, engine_us)
    return AttemptCharge(tokens, basis, engine_us, cost, disputed=disputed, legs=legs)


class _AttemptHold(msgspec.Struct, frozen=True):
    """The hold of an attempt; implements `HeldUsage`."""

    attempt: Attempt

    @property
    def media(self) -> ReachableMedia:
        return reachable_media(self.attempt.plan.request)

    def fit(self, tokens: TokenCounts) -> tuple[TokenCounts, ...]:
        attempt = self.attempt
        units, price = KINDS[attempt.plan.request.kind].units, attempt.step.frozen.price
        if units is not None:
            most = billed_counts(units.most(bounded_request(attempt)), price)
            return least_of(tokens, most), most
        searches = 0 if price is None else price.terms.searches_limit
        return fitting_tokens(tokens, bounds_of(attempt), searches)

    def is_beyond_units(self, tokens: TokenCounts) -> bool:
        request = self.attempt.plan.request
        units = KINDS[request.kind].units
        if units is None:
            return False
        most = billed_counts(units.most(request), self.attempt.step.frozen.price)
        return any(getattr(tokens, kind.field) > getattr(most, kind.field) for kind in PER_UNIT)

    def plausible(self, told: TokenCounts) -> TokenCounts:
        return plausible_claim(self.attempt, told)


def _of_api(attempt: Attempt, outcome: AttemptOutcome, used: BookedUsage) -> AttemptCharge:
    """Return an API's charge, at most the hold; cost above the hold is claimed."""
    frozen = attempt.step.frozen
    price = frozen.price
    regional = price is not None and price.terms.uplift_ppm > 0
    tier = told_tier(outcome.tier, outcome.usage or {}, regional=regional)
    units = KINDS[attempt.plan.request.kind].units
    if price is not None and units is not None and units.tier is not None:
        form = units.tier_of(price, attempt.plan.request, outcome.usage)
        tier = None if form == STANDARD else form
    asked_tier = frozen.asked_tier
    if price is not None and has_depths(price.terms):
        asked_tier, depth = "", asked_depth(attempt.plan.asked.members)
        tier = charged_depth(price.terms, figures_of(outcome.usage or {}), depth)
        tier = None if tier == STANDARD else tier
    if price is None:
        return AttemptCharge(used.tokens, used.basis, 0, None, tier, disputed=used.disputed)
    if used.tokens == NO_TOKENS and not outcome.billable:  # no request was accepted
        return AttemptCharge(used.tokens, used.basis, 0, 0, tier, disputed=used.disputed)
    held_pusd = frozen.candidate.bound_pusd or 0
    terms = BillTerms(
        price, tier, asked_tier, held_pusd, outcome.usage, stated_cost=attempt.stated_cost
    )
    bill = bill_usage(used, terms, _AttemptHold(attempt))
    return AttemptCharge(
        bill.tokens, bill.basis, 0, bill.cost_pusd, bill.tier, disputed=bill.disputed,
        unknown_tier=not bill.is_listed or (tier is None and frozen.unlisted_tier != ""),
        claimed_pusd=bill.claimed_pusd,
        plausible_pusd=bill.plausible_pusd,
        overrun=None if bill.cut is None else overrun_of(attempt, bill.cut),
        partly_read=any(map(has_unread, (outcome.usage or {}, *outcome.earlier_usage))),
        partly_priced=bool(bill.cost_pusd)
        and _is_partly_priced(attempt, outcome, price, bill.tokens),
    )  # fmt: skip


def _is_partly_priced(
    attempt: Attempt, outcome: AttemptOutcome, price: Price, tokens: TokenCounts
) -> bool:
    """Return whether a charge may apply that has no price: a fee, or a picture that was made.

    The same holds for sound that was counted as text where sound has a price of its own.
    """
    request, unread = attempt.plan.request, attempt.step.frozen.unread
    if unread:
        words = [*request.features, *(["sound"] if tokens.audio_input else [])]
        if charged_terms(unread, words):
            return True
    if tokens.searches and not (price.terms.search_pusd or price.terms.complete):
        return KINDS[request.kind].units is None  # searches of a ranking are its own price
    rates, has_text = price.terms.rates, KINDS[request.kind].answer_has_text
    as_text = has_text and not tokens.audio_output and rates.audio_output != rates.output
    if as_text and (outcome.spoken or (outcome.answer is not None and has_sound(outcome.answer))):
        return True
    listed = tokens.image_output and not is_unlisted(price.terms.rates, "image_output")
    if listed or price.terms.complete or not has_text:
        return False
    return outcome.shown or (outcome.answer is not None and has_picture_part(outcome.answer))


def _own_cost_of(attempt: Attempt, engine_us: int) -> int | None:
    frozen = attempt.step.frozen
    if frozen.target.rate_pusd_per_hour is None:
        return None
    cost = provisional_charge_pusd(engine_us, frozen.target.rate_pusd_per_hour, gpus=1)
    return min(cost, frozen.candidate.bound_pusd or cost)
