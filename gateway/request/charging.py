"""What an attempt used and what that costs: an API's tokens at its price, or engine time.

Reported usage counts if it can be meant; what contradicts itself or what came is `disputed`, and
booked at what can be. Without it an API's answer is estimated from its text, a
stream that broke off from what came. Of an API's answer in one piece that was given up nothing was
seen, and no provider promises to stop when we hang up: it is booked at the hold's bound, as a lost
attempt is, and `basis` tells the invoice's reconciliation. Booking less would let a client spend
beyond a hard budget by hanging up. An own engine's time follows from its tokens by the step model;
of an answer that was given up before it told of any, from the time that passed: it stops when told
to, but what it read of a prompt until then kept others waiting.
"""

from math import ceil

import msgspec

from backends.chunks import plain_word
from backends.errors import ServerError
from backends.text_length import said_in_answer, shows_pictures
from gateway.fleet.candidates import output_bound
from gateway.kinds import KINDS
from gateway.kinds.billable_units import AUDIO_MS_PER_TOKEN
from gateway.kinds.kind_usage import completed, used
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from gateway.request.usage_checks import (
    UsageBounds,
    contradicted,
    possible,
    prompt_possible,
    worth_reading,
)
from ledger.accounts import provisional_charge_pusd
from ledger.journals.records import Basis, TokenCounts
from ledger.journals.token_kinds import TOKENS_LIMIT
from ledger.prices.book import Price, cost_pusd, tier_cost_pusd, tier_of
from ledger.prices.unread_terms import charged_terms
from ledger.usage import UsageError
from router.estimates import PRIOR_BYTES_PER_TOKEN, TokenRatio
from router.forecast import engine_seconds
from router.types import EngineState, Feature, RoutingRequest, StepModel

TIER_LIMIT = 32  # characters of a provider's word that are kept
_NOTHING = TokenCounts()
_MEDIA = frozenset((Feature.IMAGES, Feature.MEDIA_URLS))
_Counted = tuple[TokenCounts, Basis, bool]  # and whether the target's own figures are disputed


class AttemptCharge(msgspec.Struct, frozen=True):
    """`cost_pusd` is None without a price or a rate; `tier` is what the answer named."""

    tokens: TokenCounts
    basis: Basis
    engine_us: int
    cost_pusd: int | None
    tier: str | None = None
    unknown_tier: bool = False  # the price does not list it: booked at standard rates
    disputed: bool = False  # the target reported what cannot be
    partly_priced: bool = False  # it may have been charged what its price does not say


def charge(
    attempt: Attempt, outcome: AttemptOutcome, ratio: TokenRatio, *, now_s: float
) -> AttemptCharge:
    """The attempt's charge at its end; `ratio` says how many tokens a text is."""
    request = attempt.plan.request
    spec = KINDS[request.kind]
    if spec.units is not None:
        price = attempt.step.frozen.price
        found = used(spec, spec.units, request, price, outcome, own=attempt.own)
    elif attempt.own:
        found = _own_tokens(attempt, outcome)
    else:
        found = _api_tokens(attempt, outcome, ratio)
    tokens, basis, disputed = found
    if not attempt.own:
        return _of_api(attempt, outcome, tokens, basis, disputed)
    engine = attempt.step.frozen.candidate.engine
    if engine is None or engine.step is None:
        return AttemptCharge(tokens, basis, 0, _own_cost(attempt, 0), disputed=disputed)
    # Sound is read at the rate that its engine was measured with; what it says is in that rate.
    heard = tokens.audio_ms / AUDIO_MS_PER_TOKEN
    said = 0 if heard else tokens.output
    engine_s = _engine_s(engine, engine.step, tokens.input + tokens.cache_write + heard, said)
    if _given_up(outcome, tokens):
        begun, engine_s = _until_now(attempt, engine, engine.step, now_s)
        tokens = begun if spec.units is None else tokens
    engine_us = round(engine_s * 1e6)
    cost = _own_cost(attempt, engine_us)
    return AttemptCharge(tokens, basis, engine_us, cost, disputed=disputed)


def compared_pusd(request: RoutingRequest, tokens: TokenCounts, price: Price) -> int:
    """What a comparator would have charged, by what its price lists; of nothing, nothing."""
    units = KINDS[request.kind].units
    if units is not None and tokens != _NOTHING:
        tokens = completed(tokens, price, units.estimate(request, tokens.output))
    return cost_pusd(tokens, price)


def _reported(attempt: Attempt, outcome: AttemptOutcome) -> _Counted | None:
    """What the target reported, cut to what can be; None when it reported nothing that can."""
    usage = outcome.usage
    if usage is None:
        return None
    try:
        tokens = KINDS[attempt.plan.request.kind].usage(usage)
    except UsageError:
        return None  # implausible usage is not money: `basis` and the flag show it
    limits, said = _limits(attempt), outcome.said_bytes
    if limits.output is not None and tokens.output - tokens.reasoning > limits.output:
        said = _said_bytes(attempt, outcome)
    within = possible(tokens, limits, said)
    if tokens.input + tokens.cached > limits.prompt:
        asked = attempt.plan.asked
        media = bool(asked.features & _MEDIA)
        within = prompt_possible(within, limits, asked.members, media=media)
    if within is not tokens:
        return within, "bound", True
    return tokens, "reported" if outcome.usage_final else "continuous", False


def _limits(attempt: Attempt) -> UsageBounds:
    request, cap = attempt.plan.request, attempt.step.frozen.candidate.output_cap
    each = request.max_tokens if cap is None else cap
    most = None if each is None else each * request.n
    return UsageBounds(request.n, most, request.prompt_tokens_bound)


def _own_tokens(attempt: Attempt, outcome: AttemptOutcome) -> _Counted:
    """Of an own engine nobody else keeps an account: what it did not report is not charged.

    That an answer with words in it took no token is no report.
    """
    found, disputed = _reported(attempt, outcome), bool(outcome.usage)
    if found is not None and (found[0].output or not _speaks(attempt, outcome)):
        return found
    unseen = outcome.status != "finished" and not attempt.events
    if unseen or not outcome.billable:
        return _NOTHING, "estimated", disputed
    prompt = attempt.plan.request.prompt_tokens
    return TokenCounts(input=prompt, output=attempt.events), "estimated", disputed


def _api_tokens(attempt: Attempt, outcome: AttemptOutcome, ratio: TokenRatio) -> _Counted:
    request, streamed = attempt.plan.request, attempt.plan.asked.stream
    seen = _seen(attempt)
    found, finished = _reported(attempt, outcome), outcome.status == "finished"
    if found is not None and _is_whole(found[0].output, attempt, outcome):
        tokens, basis, disputed = found
        return tokens, basis, disputed or _is_contradicted(tokens, outcome, request.n)
    # A running figure may be of the beginning; a last one, or nonsense, is what the target claims.
    disputed = bool(outcome.usage) and (found is None or outcome.usage_final)
    if not outcome.billable:
        return _NOTHING, "estimated", disputed
    most = _most(attempt)
    if not finished and not streamed:
        if outcome.error == ServerError.kind:  # it said that it failed
            return TokenCounts(input=request.prompt_tokens), "estimated", disputed
        return TokenCounts(input=request.prompt_tokens_bound, output=most), "bound", disputed
    output, said = max(seen, min(most, int(finished))), _said_bytes(attempt, outcome)
    if said:
        estimate, _ = ratio.estimate(attempt.plan.learning_key, said)
        # A tenant's own prompts teach the ratio: they must not make its answers cheap.
        estimate = max(estimate, ceil(said / PRIOR_BYTES_PER_TOKEN))
        output = max(output, min(estimate, most))
    return TokenCounts(input=request.prompt_tokens, output=output), "estimated", disputed


def _is_contradicted(tokens: TokenCounts, outcome: AttemptOutcome, choices: int) -> bool:
    """Whether the text that came says otherwise; only a last figure is of all of it."""
    usage = outcome.usage
    if usage is None or not outcome.usage_final or tokens.output == 0:
        return False
    if outcome.answer is None:
        shown = outcome.shown
        return contradicted(tokens, usage, choices, outcome.said_bytes, shown=shown)
    if not worth_reading(tokens, choices, len(outcome.answer)):
        return False
    said, shown = said_in_answer(outcome.answer), shows_pictures(outcome.answer)
    return contradicted(tokens, usage, choices, said, shown=shown)


def _is_whole(output: int, attempt: Attempt, outcome: AttemptOutcome) -> bool:
    """Whether reported output is of all that came: a running figure may be of the beginning."""
    if output == 0:
        return not _speaks(attempt, outcome)
    return outcome.usage_final or output >= _seen(attempt)


def _seen(attempt: Attempt) -> int:
    """Events of a stream's content: each is a token at least."""
    return attempt.events if attempt.plan.asked.stream else 0


def _speaks(attempt: Attempt, outcome: AttemptOutcome) -> bool:
    return bool(_seen(attempt) or _said_bytes(attempt, outcome))


def _most(attempt: Attempt) -> int:
    """The output tokens that the hold's bound was made of."""
    request, frozen = attempt.plan.request, attempt.step.frozen
    cap = frozen.candidate.output_cap
    if cap is None:
        cap = output_bound(request) if frozen.open_end is None else frozen.open_end.limit_tokens
    return min(cap * request.n, TOKENS_LIMIT)


def _said_bytes(attempt: Attempt, outcome: AttemptOutcome) -> int:
    if outcome.answer is None:
        return outcome.said_bytes
    if not KINDS[attempt.plan.request.kind].answer_has_text:
        return 0
    return said_in_answer(outcome.answer)


def _of_api(
    attempt: Attempt, outcome: AttemptOutcome, tokens: TokenCounts, basis: Basis, disputed: bool
) -> AttemptCharge:
    price = attempt.step.frozen.price
    word = outcome.tier or (outcome.usage or {}).get("service_tier")
    said = plain_word(word) if isinstance(word, str) else None
    tier = None if said is None else tier_of(said)[:TIER_LIMIT]
    if price is None:
        return AttemptCharge(tokens, basis, 0, None, tier, disputed=disputed)
    cost, listed = tier_cost_pusd(tokens, price, tier)
    return AttemptCharge(
        tokens, basis, 0, cost, tier, unknown_tier=not listed, disputed=disputed,
        partly_priced=bool(cost) and _is_partly_priced(attempt, outcome, price, tokens),
    )  # fmt: skip


def _is_partly_priced(
    attempt: Attempt, outcome: AttemptOutcome, price: Price, tokens: TokenCounts
) -> bool:
    """Whether the attempt may have been charged what nobody priced: a fee, or a picture made."""
    request, unread = attempt.plan.request, attempt.step.frozen.unread
    if unread:
        words = [*request.features, *(["sound"] if tokens.audio_input else [])]
        if charged_terms(unread, words):
            return True
    if price.terms.complete or not KINDS[request.kind].answer_has_text:
        return False
    return outcome.shown or (outcome.answer is not None and _has_picture(outcome.answer))


def _has_picture(answer: bytes) -> bool:
    """Whether the model made a picture: as a part of its own, not as an address in its text."""
    return b'"image_url"' in answer or (b'"images"' in answer and b";base64," in answer)


def _own_cost(attempt: Attempt, engine_us: int) -> int | None:
    frozen = attempt.step.frozen
    if frozen.target.rate_pusd_per_hour is None:
        return None
    cost = provisional_charge_pusd(engine_us, frozen.target.rate_pusd_per_hour, gpus=1)
    return min(cost, frozen.candidate.bound_pusd or cost)


def _given_up(outcome: AttemptOutcome, tokens: TokenCounts) -> bool:
    """Ended from our side while the engine was at work, and nothing told how far it came.

    What an engine failed at is not the client's to pay.
    """
    ours = outcome.status in ("client_gone", "timeout") and outcome.error is None
    return ours and tokens == _NOTHING and outcome.billable


def _until_now(
    attempt: Attempt, engine: EngineState, step: StepModel, now_s: float
) -> tuple[TokenCounts, float]:
    """The prompt, once its prefill must be over, and the engine time that the model expects.

    By the decision's own predictions for this engine's load; never more than the time that passed.
    A stream that said nothing was still at its prompt: it has made no token, and may be that late.
    """
    request, verdict = attempt.plan.request, attempt.step.verdict
    prompt, passed_s = request.prompt_tokens, now_s - attempt.dispatched_s
    alone_s = step.t0_s + step.d_s * prompt
    first_s = alone_s if verdict.ttft_ms is None else verdict.ttft_ms / 1e3
    token_s = max(step.a_s + step.b_s, (verdict.tpot_ms or 0.0) / 1e3)
    if passed_s < first_s or attempt.plan.asked.stream:
        part = min(1.0, passed_s / first_s) if first_s > 0 else 1.0
        return _NOTHING, min(passed_s, _engine_s(engine, step, prompt, 0) * part)
    output = (passed_s - first_s) / token_s if token_s > 0 else 0.0
    if request.max_tokens is not None:
        output = min(output, float(request.max_tokens))
    expected_s = _engine_s(engine, step, prompt, output * request.n)
    return TokenCounts(input=prompt), min(passed_s, expected_s)


def _engine_s(engine: EngineState, step: StepModel, prompt: float, output: float) -> float:
    return engine.step_feedback * engine_seconds(
        step,
        kv_capacity_tokens=engine.kv_capacity_tokens,
        prompt_tokens=prompt,
        output_mean=float(output),
        output_mean_square=float(output) ** 2,
    )
