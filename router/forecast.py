"""Forecast of a request on an own engine: latency, KV, load and engine time if admitted.

The fitted step model `step = a + b*n + c*context + d*prefill`, scaled by the feedback factor
(observed over predicted), gives TTFT and TPOT. KV and compute are combined into one resource,
engine-seconds `r`, because a context token that holds KV keeps a share `a/K` of every step. Source
of the formulas: reference simulation on real traces, 2026-11-20. Uncertain values are pessimistic:
an optimistic model collapses, a pessimistic one loses a little.
"""

from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple

from router.feedback import BRIEF_TOKENS, SAFETY_TPOT
from router.kv_peak import kv_peak_tokens, kv_rounded
from router.request_kinds import KIND_TRAITS
from router.types import (
    Candidate,
    EngineState,
    Policy,
    PrefillForecast,
    RoutingRequest,
    StepModel,
)
from router.value import value

OWN_MARGIN = 1 / 3  # share of the TTFT margin that reading a long prompt needs
BUSY_READING = 0.25  # share of engine time: above it, a late prompt delays others
STEPS_BREAK = 0.65  # step margin below which a lower mean does not help: steps count
ONE_STEP_AHEAD = 0.55  # margin of steps at which tokens of one full step may wait ahead of a prompt
AHEAD_HALVES = 0.05  # decrease of the margin that halves these tokens
LIKELY_BRIEF, HARDLY_BRIEF = 1.5, 0.8  # odds of a brief answer: probable; improbable
OUTPUTS_TRUSTED = 30  # observed outputs from which q95 replaces `max_tokens` in the KV promise

_new = tuple.__new__  # a named tuple built without its keyword layer: half the time


@value(frozen=True, slots=True)
class RequestWork:
    """Demand of a request in numbers, over all its choices; the same for every candidate.

    `promise` is the maximum context of one choice (`None`: up to the context limit), `growth` the
    context half-way through, `held` the sum of context tokens over the decode steps. `kv_scale`
    turns a KV ratio into a share of what the policy's floor leaves. `brief` is true if the answer
    is known to have few tokens. `brief_odds` is learned (`OutputMoments`).
    """

    prompt: int
    choices: int
    promise: int | None
    output: float
    growth: float
    held: float
    decodes: bool
    ttft_ms: float | None
    tpot_ms: float | None
    kv_scale: float
    brief: bool = False
    brief_odds: float = 1.0


class Forecast(NamedTuple):
    """Predicted numbers of one candidate, in the order of a verdict (`None`: no prediction).

    KV counts are tokens: `kv_promise` of this request, `kv_free` after its admission if all
    promises are kept. The limits are those that feasibility is tested against: for own engines the
    SLO times the safety factor, for APIs the SLO itself.
    """

    ttft_ms: float | None
    tpot_ms: float | None
    kv_ratio: float | None
    load: float | None
    miss_probability: float | None
    engine_seconds: float | None
    kv_promise: int
    kv_free: float
    prefill: PrefillForecast | None
    ttft_limit_ms: float | None
    tpot_limit_ms: float | None


TOLD = 9  # fields that a verdict carries: all but the limits
UNKNOWN = Forecast(None, None, None, None, None, None, 0, 0.0, None, None, None)


def work_of(request: RoutingRequest, policy: Policy) -> RequestWork:
    """Return a request's work. Expected output is capped by `max_tokens`, 0 for embeddings."""
    prompt, choices, slo = request.prompt_tokens, request.n, policy.slo
    floor = policy.kv_headroom_floor
    scale = 1.0 if floor is None else 1.0 / (1.0 - floor) if floor < 1.0 else inf
    ttft = slo.ttft_ms
    if not KIND_TRAITS[request.kind].decoded:
        longest, context = prompt, float(choices * prompt)
        if request.extent is not None:  # inputs are read one by one: each frees its cache
            longest, scale = 0, 0.0
        return RequestWork(prompt, choices, longest, 0.0, context, 0.0, False, ttft, None, scale)
    moments, most = request.output, request.max_tokens
    mean, square = moments.mean, moments.mean_square
    promise = most
    if most is None:
        if moments.count >= OUTPUTS_TRUSTED and moments.p95 < inf:
            promise = ceil(moments.p95)
    else:
        if moments.count >= OUTPUTS_TRUSTED and moments.p95 < most:
            promise = ceil(moments.p95)
        mean, square = min(mean, most), min(square, most * most)
    output, growth = choices * mean, choices * (prompt + 0.5 * mean)
    held = choices * (mean * prompt + 0.5 * square)
    brief = promise is not None and 1 < promise <= BRIEF_TOKENS
    if promise is not None:
        promise += prompt
    return RequestWork(
        prompt, choices, promise, output, growth, held, True, ttft, slo.tpot_ms, scale, brief,
        moments.brief_odds,
    )  # fmt: skip


def kv_promise_tokens(work: RequestWork, candidate: Candidate, engine: EngineState) -> int:
    """Return the maximum KV tokens of a request, in whole blocks per choice.

    Prompt tokens in the prefix cache are not subtracted: the request that held them may have ended,
    and then their blocks are free until this request holds them again.
    """
    longest, block = work.promise, engine.kv_block_tokens
    if longest is None:
        longest = max_kv_tokens(work, candidate)
    promise = (longest + block - 1) // block * block
    return promise * work.choices


def max_kv_tokens(work: RequestWork, candidate: Candidate) -> int:
    """Return the maximum context of one choice, in tokens."""
    if work.promise is None:
        return max(work.prompt, candidate.context_tokens)
    return work.promise


def kv_free_tokens(
    work: RequestWork, candidate: Candidate, engine: EngineState, promise: int
) -> float:
    """Return the least KV that stays free after admission if all promises are kept, in tokens.

    Sequences grow by a token a step and end at different times, so they never hold all their
    promises at once. For known residents the highest sum over time counts.
    """
    taken = engine.kv_taken_tokens
    if not engine.residents or work.choices > 1:
        return engine.kv_capacity_tokens - taken - promise
    block = engine.kv_block_tokens
    followed = sum(kv_rounded(final, block) for _, final, _ in engine.residents)
    newcomer = (float(work.prompt), float(max_kv_tokens(work, candidate)), 0.0)
    peak = kv_peak_tokens((*engine.residents, newcomer), block)
    return engine.kv_capacity_tokens - max(0.0, taken - followed) - peak


def forecast_engine(  # noqa: C901, PLR0912, PLR0915  (straight arithmetic: a call costs more than its terms)
    work: RequestWork, candidate: Candidate, engine: EngineState
) -> Forecast:
    """Return the forecast: TTFT, TPOT, KV, load `z` and engine-seconds `r`.

    `z` is the largest ratio of a prediction to its limit: sequences, KV, TTFT at the tightest
    class's deadline, TPOT at the tightest resident's. For a request of a looser class, that TTFT is
    of a next request of equal size, because the tightest class must still be in time behind it.
    """
    choices, output, sequences = work.choices, work.output, engine.sequences
    ttft_limit, tpot_limit = work.ttft_ms, work.tpot_ms
    capacity, used = engine.kv_capacity_tokens, engine.kv_used_tokens
    most, hit, prompts = engine.max_num_seqs, engine.prefix_hit_tokens, choices * work.prompt
    fresh = prompts if hit <= 0 else choices * max(1, work.prompt - hit)
    block, longest = engine.kv_block_tokens, work.promise
    longest = max_kv_tokens(work, candidate) if longest is None else longest
    promise = (longest + block - 1) // block * block * choices
    free = capacity - engine.kv_taken_tokens - promise
    if engine.residents:
        free = kv_free_tokens(work, candidate, engine, promise)
    full, kv_ratio = (sequences + choices) / most if most > 0 else 0.0, None
    if capacity > 0:  # residents are half-way, and end while this request runs
        kv_ratio = (used + 0.25 * sequences * output / choices + prompts + output) / capacity
        kv_full = kv_ratio * work.kv_scale
        full = kv_full if kv_full > full else full  # noqa: FURB136  (a call costs more)
    resident, deadline = engine.tightest_tpot_ms, engine.tightest_ttft_ms
    if work.decodes and resident is not None and (tpot_limit is None or resident < tpot_limit):
        tpot_limit = resident
    if deadline is None or (ttft_limit is not None and ttft_limit < deadline):
        deadline = ttft_limit
    ttft_limit = None if ttft_limit is None else ttft_limit * engine.safety_ttft
    tpot_limit = None if tpot_limit is None else tpot_limit * engine.safety_tpot
    if (step := engine.step) is None:
        known = None, None, kv_ratio, full, None, None, promise, free, None, ttft_limit, tpot_limit
        return _new(Forecast, known)
    a, b, c, d, feedback = step.a_s, step.b_s, step.c_s, step.d_s, engine.step_feedback
    context, others = engine.context_tokens + engine.queued_hit_tokens, engine.queued_prefill_tokens
    queued = others - engine.read_tokens + fresh
    now, room = engine.step_s, engine.prefill_budget_tokens - sequences
    steps = 1.0 if queued <= room else ceil(queued / room) if room > 0 else queued
    own_s = d * fresh
    wait = d * queued + steps * now
    if step.q_s:
        own_s, others_s = _attending_s(step, engine, fresh / choices, choices)
        wait += own_s + others_s - d * fresh
    if sequences:  # the step under way is half done on average
        wait += 0.5 * now
    if sequences + choices > most > 0:  # waits for others to end, one every `output` / `most` steps
        wait += (sequences + choices - most) * output / choices * now / most
    ttft = 1000.0 * (step.t0_s + feedback * wait)
    decoding, tpot = engine.decoding, inf
    if decoding > 0.0:
        end = a + b * (sequences + choices) + c * (context + others + work.growth)
        tpot = 1000.0 * feedback * end / decoding
        tpot = _beside_others_ms(work, engine, end, ttft, tpot) if work.brief else tpot
    if tpot_limit is not None and (tpot > tpot_limit or engine.spare_brief_misses < 0.0):
        tpot, tpot_limit = _by_steps_ms(work, engine, queued, tpot, tpot_limit)
    seconds = feedback * (own_s + b * output + engine.hold_s * work.held)
    if deadline is not None:
        late, in_time = ttft, deadline * engine.safety_ttft
        if deadline != work.ttft_ms:
            late += 1000.0 * feedback * own_s
        elif ttft > 0.5 * deadline:
            ttft_limit = in_time = in_time + _sure_ms(feedback * own_s, deadline, engine)
        if late > full * in_time:
            full = late / in_time
    if tpot_limit is not None and tpot > full * tpot_limit:
        full = tpot / tpot_limit
    told = (ttft, tpot if work.decodes else None, kv_ratio, full, None, seconds, promise, free)
    return _new(Forecast, (*told, None, ttft_limit, tpot_limit))


def _attending_s(
    step: StepModel, engine: EngineState, tokens: float, choices: int
) -> tuple[float, float]:
    """Return the seconds to read these prompts with attention, and those of the queued ones.

    For the queue, the tokens and their mean weighted by size are known; the product is the sum of
    squares. The part already read of the first prompt is its beginning, which costs least.
    """
    own = choices * tokens * (engine.prefix_hit_tokens + 0.5 * tokens)
    queued, read = engine.queued_prefill_tokens, engine.read_tokens
    others = 0.5 * (engine.head_tokens * queued - read * read)
    return step.d_s * choices * tokens + step.q_s * own, step.q_s * max(0.0, others)


def _by_steps_ms(
    work: RequestWork, engine: EngineState, queued: float, tpot: float, limit: float
) -> tuple[float, float]:
    """Return TPOT and its limit, ms; of single steps where they decide instead of the mean."""
    if engine.prefill_budget_tokens <= engine.sequences:
        return tpot, limit
    if tpot > limit:
        return _surely_ms(work, engine, tpot, limit)
    if work.brief_odds >= LIKELY_BRIEF:
        return _never_long_ms(work, engine, tpot, limit)
    if engine.safety_tpot < STEPS_BREAK and work.brief_odds > HARDLY_BRIEF:
        return _behind_others_ms(work, engine, queued, tpot, limit)
    return tpot, limit


def _surely_ms(
    work: RequestWork, engine: EngineState, tpot: float, limit: float
) -> tuple[float, float]:
    """Return TPOT and its limit, ms; of the longest step, without margin, if that is kept."""
    longest = _longest_step_ms(work, engine, engine.prefill_budget_tokens)
    promised = limit / max(engine.safety_tpot, SAFETY_TPOT)
    return (longest, promised) if longest <= promised and longest < tpot else (tpot, limit)


def _never_long_ms(
    work: RequestWork, engine: EngineState, tpot: float, limit: float
) -> tuple[float, float]:
    """Return TPOT and its limit, ms; of a full step if that is longer than promised.

    The answer is likely to have few tokens, and later prompts are unknown. Requests that rarely
    have such answers need not wait for each other then, and are worth more.
    """
    longest = _longest_step_ms(work, engine, engine.prefill_budget_tokens)
    promised = limit / engine.safety_tpot
    return (longest, promised) if longest > promised else (tpot, limit)


def _behind_others_ms(
    work: RequestWork, engine: EngineState, queued: float, tpot: float, limit: float
) -> tuple[float, float]:
    """Return TPOT and its limit, ms; of the step that reads this prompt if that is too long.

    Answers of few tokens begin among the prompts ahead, and one long step breaks their promise,
    which a mean does not show. So after such answers broke more promises than the SLO allows, fewer
    tokens may wait ahead of a prompt that makes a step longer than promised: the lower the step
    margin, the fewer. With nothing ahead such a prompt breaks almost no promise.
    """
    budget, safety = engine.prefill_budget_tokens, engine.safety_tpot
    if engine.queued_prefill_tokens <= budget * 2.0 ** ((safety - ONE_STEP_AHEAD) / AHEAD_HALVES):
        return tpot, limit
    longest, promised = _longest_step_ms(work, engine, queued), limit / safety
    return (longest, promised) if longest > promised else (tpot, limit)


def _longest_step_ms(work: RequestWork, engine: EngineState, prompts: float) -> float:
    """Return the maximum time of a step with this request and `prompts` tokens to read, ms.

    An engine reads at most its prefill budget in a step, whatever the recent arrival rate.
    """
    step, held = engine.step, engine.context_tokens + engine.queued_hit_tokens
    if step is None:
        return inf
    held += engine.queued_prefill_tokens + work.growth
    plain = step.a_s + step.b_s * (engine.sequences + work.choices) + step.c_s * held
    read = min(prompts, engine.prefill_budget_tokens - engine.sequences)
    return 1000.0 * engine.step_feedback * (plain + step.d_s * read)


def _sure_ms(reading_s: float, promised_ms: float, engine: EngineState) -> float:
    """Return how many ms later than the full margin a long prompt's first token may be.

    The margin covers other requests. If reading the prompt itself takes two thirds of the promise,
    that part is known as well as the engine's pace, and a third of the margin is enough for it; up
    to half of the promise the margin is not reduced. While the engine has a miss to spare and reads
    little, a prompt that reads for half of the promise needs no margin: no other prompt gains more
    by it, and few requests wait behind it.
    """
    sure, safety = 1000.0 * reading_s, engine.safety_ttft
    if 2.0 * sure < promised_ms:
        return 0.0
    if engine.spare_misses >= 1.0 and _reading_share(engine) < BUSY_READING:
        return max(0.0, 1.0 - safety) * promised_ms
    sure = min(sure, 4.0 * sure - 2.0 * promised_ms)
    return sure * (1.0 - safety / (1.0 - OWN_MARGIN * (1.0 - safety)))


def _reading_share(engine: EngineState) -> float:
    """Return the share of its time that an engine reads prompts, from recent admissions."""
    return 0.0 if engine.step is None else engine.prefill_rate_tokens_per_s * engine.step.d_s


def _beside_others_ms(
    work: RequestWork, engine: EngineState, end: float, ttft: float, tpot: float
) -> float:
    """Return the TPOT of a brief answer if prompts behind it are read in its steps, ms.

    Prompts come in bursts, so the tokens behind it are those queued now and those that arrive until
    its first token. This is the worst case, so it is compared with the promise without a margin.
    """
    step, promised = engine.step, work.tpot_ms
    room = engine.prefill_budget_tokens - engine.sequences
    if step is None or promised is None or room <= 0:
        return tpot
    behind = engine.queued_prefill_tokens + engine.prefill_rate_tokens_per_s * ttft / 1000.0
    filled = 1000.0 * engine.step_feedback * (end + step.d_s * min(room, behind))
    return max(tpot, filled) if filled > promised else tpot


def emptied(engine: EngineState) -> EngineState:
    """Return the engine as it would be when idle, at its best and without a margin."""
    return replace(
        engine, running=0, waiting=0, context_tokens=0.0, queued_prefill_tokens=0.0,
        queued_hit_tokens=0.0, kv_used_tokens=0.0, kv_promised_tokens=0.0, residents=(),
        head_tokens=0.0, head_since_s=0.0, prefill_rate_tokens_per_s=0.0, tightest_ttft_ms=None,
        tightest_tpot_ms=None, step_feedback=min(1.0, engine.step_feedback), spare_misses=0.0,
        spare_brief_misses=0.0, safety_ttft=1.0, safety_tpot=1.0,
    )  # fmt: skip


def engine_seconds(
    step: StepModel,
    *,
    kv_capacity_tokens: int,
    prompt_tokens: float,
    output_mean: float,
    output_mean_square: float,
) -> float:
    """Return `r` in seconds for known usage, before feedback: the engine time of the request.

    `forecast_engine` inlines the same formula, because a call costs more than the arithmetic.
    """
    hold = step.c_s
    if kv_capacity_tokens > 0:
        hold += step.a_s / kv_capacity_tokens
    held = output_mean * prompt_tokens + 0.5 * output_mean_square
    read_s = step.d_s * prompt_tokens + 0.5 * step.q_s * prompt_tokens * prompt_tokens
    return read_s + step.b_s * output_mean + hold * held
