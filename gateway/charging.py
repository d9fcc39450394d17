"""What an attempt used and what that costs: an API's tokens at its price, or engine time.

Reported usage counts if there is any; else what was seen, marked as an estimate. An own engine's
time follows from its tokens by the step model. Of an answer in one piece that was given up, no
token is ever seen: the engine's time is then what the model says of the time that passed, because
that work was done, and somebody's money paid for it.
"""

from dataclasses import dataclass

from backends.chunks import plain_word
from gateway.attempt import Attempt, Outcome
from ledger.accounts import provisional_charge_pusd
from ledger.prices import tier_cost_pusd, tier_of
from ledger.records import Basis, Tokens
from ledger.usage import Convention, UsageError, tokens_from_usage
from router.forecast import engine_seconds
from router.types import EngineState, StepModel

TIER_LIMIT = 32  # characters of a provider's word that are kept
_NOTHING = Tokens()


@dataclass(frozen=True, slots=True)
class Charge:
    """`cost_pusd` is None without a price or a rate; `tier` is what the answer named."""

    tokens: Tokens
    basis: Basis
    engine_us: int
    cost_pusd: int | None
    tier: str | None = None
    unknown_tier: bool = False  # the price does not list it: booked at standard rates


def charge(attempt: Attempt, outcome: Outcome, *, now_s: float) -> Charge:
    """The attempt's charge at its end."""
    tokens, basis = _tokens(attempt, outcome)
    if not attempt.own:
        return _of_api(attempt, outcome, tokens, basis)
    engine = attempt.step.frozen.candidate.engine
    if engine is None or engine.step is None:
        return Charge(tokens, basis, 0, _own_cost(attempt, 0))
    engine_s = _engine_s(engine, engine.step, tokens.input + tokens.cache_write, tokens.output)
    if _given_up(attempt, outcome, tokens):
        tokens, engine_s = _until_now(attempt, engine, engine.step, now_s)
    engine_us = round(engine_s * 1e6)
    return Charge(tokens, basis, engine_us, _own_cost(attempt, engine_us))


def _tokens(attempt: Attempt, outcome: Outcome) -> tuple[Tokens, Basis]:
    if outcome.usage is not None:
        try:
            tokens = tokens_from_usage(outcome.usage, Convention.CACHED_INSIDE)
        except UsageError:
            pass  # implausible usage is not money: estimated below, `basis` shows it
        else:
            return tokens, "reported" if outcome.usage_final else "continuous"
    # Of an own engine nobody else keeps an account: what it did not report is not charged.
    unseen = attempt.own and outcome.status != "finished" and not attempt.events
    if unseen or not outcome.billable:
        return _NOTHING, "estimated"
    prompt = attempt.plan.request.prompt_tokens
    return Tokens(input=prompt, output=attempt.events), "estimated"


def _of_api(attempt: Attempt, outcome: Outcome, tokens: Tokens, basis: Basis) -> Charge:
    price = attempt.step.frozen.price
    word = outcome.tier or (outcome.usage or {}).get("service_tier")
    said = plain_word(word) if isinstance(word, str) else None
    tier = None if said is None else tier_of(said)[:TIER_LIMIT]
    if price is None:
        return Charge(tokens, basis, 0, None, tier)
    cost, listed = tier_cost_pusd(tokens, price, tier)
    return Charge(tokens, basis, 0, cost, tier, unknown_tier=not listed)


def _own_cost(attempt: Attempt, engine_us: int) -> int | None:
    frozen = attempt.step.frozen
    if frozen.target.rate_pusd_per_hour is None:
        return None
    cost = provisional_charge_pusd(engine_us, frozen.target.rate_pusd_per_hour, gpus=1)
    return min(cost, frozen.candidate.bound_pusd or cost)


def _given_up(attempt: Attempt, outcome: Outcome, tokens: Tokens) -> bool:
    """An answer in one piece that was ended from our side while the engine was at work.

    A stream says how far it came; what an engine failed at is not the client's to pay.
    """
    ours = outcome.status in ("client_gone", "timeout") and outcome.error is None
    return ours and tokens == _NOTHING and outcome.billable and not attempt.plan.asked.stream


def _until_now(
    attempt: Attempt, engine: EngineState, step: StepModel, now_s: float
) -> tuple[Tokens, float]:
    """The prompt, once its prefill must be over, and the engine time that the model expects.

    By the decision's own predictions for this engine's load; never more than the time that passed.
    """
    request, verdict = attempt.plan.request, attempt.step.verdict
    prompt, passed_s = request.prompt_tokens, now_s - attempt.dispatched_s
    alone_s = step.t0_s + step.d_s * prompt
    first_s = alone_s if verdict.ttft_ms is None else verdict.ttft_ms / 1e3
    token_s = max(step.a_s + step.b_s, (verdict.tpot_ms or 0.0) / 1e3)
    if passed_s < first_s:
        return _NOTHING, min(passed_s, _engine_s(engine, step, prompt, 0) * passed_s / first_s)
    output = (passed_s - first_s) / token_s if token_s > 0 else 0.0
    if request.max_tokens is not None:
        output = min(output, float(request.max_tokens))
    expected_s = _engine_s(engine, step, prompt, output * request.n)
    return Tokens(input=prompt), min(passed_s, expected_s)


def _engine_s(engine: EngineState, step: StepModel, prompt: float, output: float) -> float:
    return engine.step_feedback * engine_seconds(
        step,
        kv_capacity_tokens=engine.kv_capacity_tokens,
        prompt_tokens=prompt,
        output_mean=float(output),
        output_mean_square=float(output) ** 2,
    )
