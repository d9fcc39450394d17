"""What an attempt used and what that costs: an API's tokens at its price, or engine time.

Reported usage counts if it can be meant; what contradicts itself or what came is `disputed`, and
booked at what can be. Without it an API's answer is estimated from its text, a
stream that broke off from what came. What an API may have made of an answer that was given up, and
did not tell, is decided in `hangups`. Where nothing bounds it, it is booked at the hold's bound, as
a lost attempt is, and marked `unseen`; `basis` tells the invoice's reconciliation. Booking less
would let a client spend beyond a hard budget by hanging up. An own engine's time follows from its
tokens by the step model; of an answer that was given up before it told of any, from the time that
passed: it stops when told to, but what it read of a prompt until then kept others waiting.
"""

from math import ceil, inf
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from backends.chunks import printable_text
from backends.errors import ServerError
from gateway.fleet.prompt_bound import media_of
from gateway.kinds import KINDS
from gateway.kinds.billable_units import AUDIO_MS_PER_TOKEN, LONGEST_TOKEN_BYTES
from gateway.kinds.kind_usage import complete_counts, usage_of
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.service_tiers import TIER_LIMIT
from gateway.request.attempt import Attempt
from gateway.request.engine_progress import engine_time_s, estimate_progress, is_interrupted
from gateway.request.hangups import thought_tokens, unseen_output
from gateway.request.limit_overruns import LimitOverrun, overrun_of
from gateway.request.plausible_claims import plausible_of
from gateway.request.prompt_overruns import prompt_overrun_of
from gateway.request.reported_usage import (
    Contradiction,
    UsageReading,
    bounds_of,
    find_contradiction,
    most_output_of,
    read_usage,
    said_bytes_of,
)
from gateway.request.usage_checks import (
    fit_text,
    fit_tokens,
    least_of,
    most_tokens,
)
from ledger.accounts import provisional_charge_pusd
from ledger.journals.records import Basis, TokenCounts
from ledger.prices.book import (
    Price,
    cost_pusd,
    dearest_kinds,
    dearest_tier,
    tier_cost_pusd,
    tier_of,
)
from ledger.prices.rates import is_unlisted
from ledger.prices.unread_terms import charged_terms
from ledger.usage import has_unread
from router.target_output import TargetOutput
from router.target_prompts import PromptOverrun
from router.token_ratio import PRIOR_BYTES_PER_TOKEN, TokenRatio
from router.types import RoutingRequest

_NOTHING = TokenCounts()


class _BookedUsage(NamedTuple):
    """The booked tokens; `claim` has the target's own figures, where they are disputed.

    `within_text` are those figures with no more output than the text that came can have.
    """

    tokens: TokenCounts
    basis: Basis
    disputed: bool
    claim: TokenCounts | None = None
    within_text: TokenCounts | None = None


class AttemptCharge(msgspec.Struct, frozen=True):
    """`cost_pusd` is None without a price or a rate; `tier` is what the answer named.

    Of an answer that named none and is booked at its bound, it is the dearest: its hold's.
    """

    tokens: TokenCounts
    basis: Basis
    engine_us: int
    cost_pusd: int | None
    tier: str | None = None
    unknown_tier: bool = False  # the price does not list it: booked at standard rates
    disputed: bool = False  # the target reported what cannot be
    claimed_pusd: int | None = None  # by the target's own figures, where they are above the hold
    partly_read: bool = False  # the target's usage has counts that nobody here knows
    overrun: LimitOverrun | None = None  # output beyond what was held for, where it teaches
    partly_priced: bool = False  # it may have been charged what its price does not say
    unseen: bool = False  # given up: what was made of it is not known, and its bound is booked
    plausible_pusd: int | None = None  # of what is claimed beyond the cost: it can have been made
    prompt_overrun: PromptOverrun | None = None  # a prompt beyond what was stated, where it teaches


def charge(
    attempt: Attempt,
    outcome: AttemptOutcome,
    ratio: TokenRatio,
    target_output: TargetOutput | None = None,
    *,
    now_s: float,
) -> AttemptCharge:
    """The attempt's charge at its end; `ratio` says how many tokens a text is.

    `target_output`: what is known of output that targets do not show.
    """
    request = attempt.plan.request
    spec = KINDS[request.kind]
    if spec.units is not None:
        price = attempt.step.frozen.price
        sent = None if attempt.own else attempt.plan.asked.members
        found = _BookedUsage(*usage_of(spec, spec.units, request, price, outcome, sent=sent))
    elif attempt.own:
        found = _own_tokens(attempt, outcome)
    else:
        unseen = unseen_output(attempt, outcome, target_output or TargetOutput(), now_s)
        found = _api_tokens(attempt, outcome, ratio, unseen)
    if not attempt.own:
        bill = _of_api(attempt, outcome, found)
        if found.basis == "bound" and (outcome.is_given_up or outcome.is_silent):
            return replace(bill, unseen=True)
        beyond = attempt.step.frozen.prompt is not None and found.basis == "reported"
        if beyond and not found.disputed:
            prompt_overrun = prompt_overrun_of(attempt, found.tokens, ratio)
            return bill if prompt_overrun is None else replace(bill, prompt_overrun=prompt_overrun)
        return bill
    tokens, basis, disputed, _, _ = found
    engine = attempt.step.frozen.candidate.engine
    if engine is None or engine.step is None:
        return AttemptCharge(tokens, basis, 0, _own_cost_of(attempt, 0), disputed=disputed)
    # Sound is read at the rate that its engine was measured with; what it says is in that rate.
    heard = tokens.audio_ms / AUDIO_MS_PER_TOKEN
    said = 0 if heard else tokens.output
    engine_s = engine_time_s(engine, engine.step, tokens.input + tokens.cache_write + heard, said)
    if is_interrupted(outcome, tokens):
        begun, engine_s = estimate_progress(attempt, engine, engine.step, now_s)
        tokens = begun if spec.units is None else tokens
    engine_us = round(engine_s * 1e6)
    cost = _own_cost_of(attempt, engine_us)
    return AttemptCharge(tokens, basis, engine_us, cost, disputed=disputed)


def compared_pusd(request: RoutingRequest, tokens: TokenCounts, price: Price) -> int:
    """What a comparator would have charged, by what its price lists; of nothing, nothing."""
    if tokens == _NOTHING:
        return 0
    units = KINDS[request.kind].units
    if units is not None:
        tokens = complete_counts(tokens, price, units.estimate(request, tokens.output))
    return cost_pusd(tokens, price)


def _own_tokens(attempt: Attempt, outcome: AttemptOutcome) -> _BookedUsage:
    """Of an own engine nobody else keeps an account: what it did not report is not charged.

    That an answer with words in it took no token is no report.
    """
    found, disputed = read_usage(attempt, outcome), bool(outcome.usage)
    if found is not None and (found.tokens.output or not _speaks(attempt, outcome)):
        if found.disputed:
            return _BookedUsage(fit_tokens(found.tokens, bounds_of(attempt)), "bound", True)
        return _BookedUsage(found.tokens, found.basis, False)
    unseen = outcome.status != "finished" and not attempt.events
    if unseen or not outcome.billable:
        return _BookedUsage(_NOTHING, "estimated", disputed)
    prompt = attempt.plan.request.prompt_tokens
    tokens = TokenCounts(input=prompt, output=attempt.events)
    return _BookedUsage(tokens, "estimated", disputed)


def _api_tokens(
    attempt: Attempt, outcome: AttemptOutcome, ratio: TokenRatio, unseen: float
) -> _BookedUsage:
    """`unseen`: output tokens that may have been made beyond what came."""
    request, streamed = attempt.plan.request, attempt.plan.asked.stream
    found, finished = read_usage(attempt, outcome), outcome.is_whole
    if not unseen and found is not None and _is_whole(found.tokens.output, attempt, outcome):
        contradiction = find_contradiction(found, attempt, outcome)
        if contradiction is None and not found.disputed:
            return _BookedUsage(found.tokens, found.basis, False)
        tokens, basis = found.tokens, found.basis
        if contradiction is not None:
            tokens, basis = _within_text(found, contradiction, attempt, outcome, ratio), "estimated"
        fitted = fit_tokens(tokens, bounds_of(attempt))
        return _BookedUsage(
            fitted, basis if fitted == tokens else "bound", True, found.tokens, tokens
        )
    # A running figure may be of the beginning; a last one, or nonsense, is what the target claims.
    disputed = bool(outcome.usage) and (found is None or outcome.usage_final)
    if not outcome.billable:
        return _BookedUsage(_NOTHING, "estimated", disputed)
    if not finished and not streamed:
        if outcome.error == ServerError.kind:  # it said that it failed
            return _BookedUsage(TokenCounts(input=request.prompt_tokens), "estimated", disputed)
        unseen = unseen or inf
    output, most = _estimated_output(attempt, outcome, ratio), most_output_of(attempt)
    if unseen and found is not None:
        output = max(output, found.tokens.output)
    bounded = bool(unseen) and output + unseen >= most
    beyond = max(0, most - output) if bounded else int(unseen)
    prompt = bounds_of(attempt).prompt if bounded else request.prompt_tokens
    tokens = TokenCounts(prompt, output=output + beyond, reasoning=thought_tokens(attempt, beyond))
    return _BookedUsage(tokens, "bound" if bounded else "estimated", disputed)


def _thinks_dearly(attempt: Attempt) -> bool:
    price = attempt.step.frozen.price
    return price is not None and price.terms.rates.reasoning > price.terms.rates.output


def _estimated_output(attempt: Attempt, outcome: AttemptOutcome, ratio: TokenRatio) -> int:
    """Tokens of the text that came, at most those held for; an event of a stream is one."""
    most, seen, said = (
        most_output_of(attempt),
        _content_events_of(attempt),
        said_bytes_of(attempt, outcome),
    )
    output = max(seen, min(most, int(outcome.is_whole)))
    if said:
        estimate = ratio.text_tokens(attempt.plan.learning_key, said)
        # A tenant's own prompts teach the ratio: they must not make its answers cheap.
        estimate = max(estimate, ceil(said / PRIOR_BYTES_PER_TOKEN))
        output = max(output, min(estimate, most))
    return output


def _within_text(
    found: UsageReading,
    contradiction: Contradiction,
    attempt: Attempt,
    outcome: AttemptOutcome,
    ratio: TokenRatio,
) -> TokenCounts:
    """The figures with the output that the text can have."""
    tokens, said = found.tokens, said_bytes_of(attempt, outcome)
    if contradiction is Contradiction.TOO_LOW:
        estimate = _estimated_output(attempt, outcome, ratio)
        return replace(tokens, output=max(estimate, -(-said // LONGEST_TOKEN_BYTES)))
    return fit_text(tokens, attempt.plan.request.n, said)


def _is_whole(output: int, attempt: Attempt, outcome: AttemptOutcome) -> bool:
    """Whether reported output is of all that came: a running figure may be of the beginning."""
    if output == 0:
        return not _speaks(attempt, outcome)
    return outcome.usage_final or output >= _content_events_of(attempt)


def _content_events_of(attempt: Attempt) -> int:
    """Events of a stream's content: each is a token at least."""
    return attempt.events if attempt.plan.asked.stream else 0


def _speaks(attempt: Attempt, outcome: AttemptOutcome) -> bool:
    return bool(_content_events_of(attempt) or said_bytes_of(attempt, outcome))


def _of_api(attempt: Attempt, outcome: AttemptOutcome, counted: _BookedUsage) -> AttemptCharge:
    """Booked at no more than was held; what the target's figures cost beyond it is claimed."""
    tokens, basis, disputed, claim, within_text = counted
    price = attempt.step.frozen.price
    word = outcome.tier or (outcome.usage or {}).get("service_tier")
    said = printable_text(word) if isinstance(word, str) else None
    tier = None if said is None else tier_of(said)[:TIER_LIMIT]
    if price is None:
        return AttemptCharge(tokens, basis, 0, None, tier, disputed=disputed)
    if tokens == _NOTHING and not outcome.billable:  # no fee either: no request was taken
        return AttemptCharge(tokens, basis, 0, 0, tier, disputed=disputed)
    if _is_whole_bound(attempt, counted):
        # It may have been of any kind and tier: its hold is made of the dearest.
        tokens = dearest_kinds(tokens, price, media_of(attempt.plan.request))
        tier = dearest_tier(tokens, price) if tier is None else tier
    cost, listed = tier_cost_pusd(tokens, price, tier)
    claimed = cost if claim is None else tier_cost_pusd(claim, price, tier)[0]
    told = within_text or tokens
    held, overrun = attempt.step.frozen.candidate.bound_pusd, None
    if held and cost > held:
        overrun = None if disputed else overrun_of(attempt, tokens)
        disputed = disputed or _exceeds_units(attempt, tokens)
        tokens, cost = _within_hold(attempt, tokens, price, tier, held)
        basis = "bound"
    plausible = None
    if claimed > cost:
        plausible = plausible_of(attempt, told, tier, booked_pusd=cost, claimed_pusd=claimed)
    return AttemptCharge(
        tokens, basis, 0, cost, tier, disputed=disputed,
        unknown_tier=not listed or (tier is None and attempt.step.frozen.unlisted_tier != ""),
        claimed_pusd=claimed if claimed > cost else None,
        plausible_pusd=plausible, overrun=overrun,
        partly_read=has_unread(outcome.usage or {}),
        partly_priced=bool(cost) and _is_partly_priced(attempt, outcome, price, tokens),
    )  # fmt: skip


def _is_whole_bound(attempt: Attempt, counted: _BookedUsage) -> bool:
    """Whether nothing was told, so that all that was held for is booked."""
    units = KINDS[attempt.plan.request.kind].units
    return counted.basis == "bound" and counted.claim is None and units is None


def _within_hold(
    attempt: Attempt, tokens: TokenCounts, price: Price, tier: str | None, held_pusd: int
) -> tuple[TokenCounts, int]:
    """The tokens that fit into the hold, and their cost.

    A tier that is dearer than all that the hold knew is booked as it is, and flagged by its row.
    """
    request = attempt.plan.request
    units = KINDS[request.kind].units
    if units is None:
        bounds = bounds_of(attempt)
        fitting = (fit_tokens(tokens, bounds), most_tokens(bounds))
    else:
        most = units.most(request)
        fitting = (least_of(tokens, most), most)
    for fitted in fitting:
        cost, _ = tier_cost_pusd(fitted, price, tier)
        if cost <= held_pusd:
            return fitted, cost
    return tokens, tier_cost_pusd(tokens, price, tier)[0]


def _exceeds_units(attempt: Attempt, tokens: TokenCounts) -> bool:
    """Whether more searches or seconds are counted than the request can have."""
    request = attempt.plan.request
    units = KINDS[request.kind].units
    if units is None:
        return False
    most = units.most(request)
    return tokens.searches > most.searches or tokens.audio_ms > most.audio_ms


def _is_partly_priced(
    attempt: Attempt, outcome: AttemptOutcome, price: Price, tokens: TokenCounts
) -> bool:
    """Whether the attempt may have been charged what nobody priced: a fee, or a picture made."""
    request, unread = attempt.plan.request, attempt.step.frozen.unread
    if unread:
        words = [*request.features, *(["sound"] if tokens.audio_input else [])]
        if charged_terms(unread, words):
            return True
    listed = tokens.image_output and not is_unlisted(price.terms.rates, "image_output")
    if listed or price.terms.complete or not KINDS[request.kind].answer_has_text:
        return False
    return outcome.shown or (outcome.answer is not None and _has_picture(outcome.answer))


def _has_picture(answer: bytes) -> bool:
    """Whether the model made a picture: as a part of its own, not as an address in its text.

    Parts stand in a list inside of the list of choices: to look for one byte takes a hundredth of
    the time.
    """
    if answer.find(b"[", answer.find(b"[") + 1) < 0:
        return False
    return b'"image_url"' in answer or (b'"images"' in answer and b";base64," in answer)


def _own_cost_of(attempt: Attempt, engine_us: int) -> int | None:
    frozen = attempt.step.frozen
    if frozen.target.rate_pusd_per_hour is None:
        return None
    cost = provisional_charge_pusd(engine_us, frozen.target.rate_pusd_per_hour, gpus=1)
    return min(cost, frozen.candidate.bound_pusd or cost)
