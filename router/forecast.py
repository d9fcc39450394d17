"""The forecast of a request on an own engine: seconds, KV, load and engine time if admitted.

The fitted step model `step = a + b*n + c*context + d*prefill`, scaled by the observed-over-
predicted feedback factor, gives TTFT and TPOT. KV and compute collapse into one scarce resource,
engine-seconds `r`, because a context token that holds KV keeps a share `a/K` of every step.
Source of the formulas: reference simulation on real traces, 2026-11-20. What is uncertain leans
pessimistic: an optimistic model collapses, a pessimistic one loses a little.
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

OWN_MARGIN = 1 / 3  # of the margin of first tokens: what reading a long prompt needs of it
BUSY_READING = 0.25  # of an engine's time: where it reads more, a late prompt makes others late
STEPS_BREAK = 0.65  # margin of steps so low that a lower mean does not help: single steps count
ONE_STEP_AHEAD = 0.55  # margin of steps at which tokens of one full step may wait ahead of a prompt
AHEAD_HALVES = 0.05  # by which it is lower where half of them may
LIKELY_BRIEF, HARDLY_BRIEF = 1.5, 0.8  # odds of a brief answer: it may be one; it is none
OUTPUTS_TRUSTED = 30  # observed outputs from which q95 replaces `max_tokens` in the KV promise

_new = tuple.__new__  # a named tuple built without its keyword layer: half the time


@value(frozen=True, slots=True)
class RequestWork:
    """The request's demand in numbers, over all its choices; the same for every candidate.

    `promise` is the context of one choice at its longest (`None`: up to the context limit),
    `growth` its context half-way through, `held` the sum of context tokens over its decode steps.
    `kv_scale` turns a KV ratio into a share of what the policy's floor leaves. `brief`: its answer
    is known to be of a few tokens. `brief_odds` as learned (`OutputMoments`).
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
    """Numbers of one candidate, in the order a verdict has them (`None`: cannot be predicted).

    KV counts are tokens: `kv_promise` of this request, `kv_free` after its admission with all
    promises kept. The limits are what feasibility is tested against: for own engines the SLO times
    the safety factor, for APIs the SLO itself.
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


TOLD = 9  # of these a verdict tells, all but the limits
UNKNOWN = Forecast(None, None, None, None, None, None, 0, 0.0, None, None, None)


def work_of(request: RoutingRequest, policy: Policy) -> RequestWork:
    """Return a request's work; expected output is within the client's limit, 0 for embeddings."""
    prompt, choices, slo = request.prompt_tokens, request.n, policy.slo
    floor = policy.kv_headroom_floor
    scale = 1.0 if floor is None else 1.0 / (1.0 - floor) if floor < 1.0 else inf
    ttft = slo.ttft_ms
    if not KIND_TRAITS[request.kind].decoded:
        longest, context = prompt, float(choices * prompt)
        if request.extent is not None:  # each input leaves the cache before the last one enters it
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
    """Return the KV tokens that a request may hold, in whole blocks per choice.

    Of a prompt in the prefix cache nothing is taken off: who held it may have ended, and then its
    blocks are free until this request holds them again.
    """
    longest, block = work.promise, engine.kv_block_tokens
    if longest is None:
        longest = max_kv_tokens(work, candidate)
    promise = (longest + block - 1) // block * block
    return promise * work.choices


def max_kv_tokens(work: RequestWork, candidate: Candidate) -> int:
    """Return the context of one choice at its longest."""
    if work.promise is None:
        return max(work.prompt, candidate.context_tokens)
    return work.promise


def kv_free_tokens(
    work: RequestWork, candidate: Candidate, engine: EngineState, promise: int
) -> float:
    """Return the least KV that stays free after admission, with all promises kept.

    Sequences grow by a token a step and end one after the other, so they never hold all their
    promises at once: of the residents that are followed, the highest sum over time counts.
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

    `z` is the worst ratio of a prediction to its limit: sequences, KV, TTFT at the tightest class's
    deadline, TPOT at the tightest resident's. For a request of a looser class that TTFT is that of
    one like it that came next: whether the tightest were still in time behind it.
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
    """Return how long reading these prompts takes with attention, and that of the queued ones.

    Of a queue its tokens and their mean weighted by size are known, whose product is the sum of
    squares. What was read of the first prompt lies at its beginning, where it costs least.
    """
    own = choices * tokens * (engine.prefix_hit_tokens + 0.5 * tokens)
    queued, read = engine.queued_prefill_tokens, engine.read_tokens
    others = 0.5 * (engine.head_tokens * queued - read * read)
    return step.d_s * choices * tokens + step.q_s * own, step.q_s * max(0.0, others)


def _by_steps_ms(
    work: RequestWork, engine: EngineState, queued: float, tpot: float, limit: float
) -> tuple[float, float]:
    """Return TPOT and its limit, ms: of single steps, where these and no mean decide."""
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
    """Return TPOT and its limit, ms: of the longest step, without a margin, where that keeps it."""
    longest = _longest_step_ms(work, engine, engine.prefill_budget_tokens)
    promised = limit / max(engine.safety_tpot, SAFETY_TPOT)
    return (longest, promised) if longest <= promised and longest < tpot else (tpot, limit)


def _never_long_ms(
    work: RequestWork, engine: EngineState, tpot: float, limit: float
) -> tuple[float, float]:
    """Return TPOT and its limit, ms: of a full step, where that is longer than promised.

    The answer is likely to be of a few tokens, and who comes behind it is not known. Prompts that
    hardly have such answers need not wait for each other then, and these are worth more.
    """
    longest = _longest_step_ms(work, engine, engine.prefill_budget_tokens)
    promised = limit / engine.safety_tpot
    return (longest, promised) if longest > promised else (tpot, limit)


def _behind_others_ms(
    work: RequestWork, engine: EngineState, queued: float, tpot: float, limit: float
) -> tuple[float, float]:
    """Return TPOT and its limit, ms: of the step that reads this prompt, where that is too long.

    Answers of a few tokens begin among the prompts ahead, and one long step breaks their promise,
    which no mean tells. So where such answers broke more promises than the SLO leaves, the lower
    the margin of steps fell, the fewer tokens may wait ahead of a prompt that makes a step longer
    than promised. Behind nothing it breaks next to none.
    """
    budget, safety = engine.prefill_budget_tokens, engine.safety_tpot
    if engine.queued_prefill_tokens <= budget * 2.0 ** ((safety - ONE_STEP_AHEAD) / AHEAD_HALVES):
        return tpot, limit
    longest, promised = _longest_step_ms(work, engine, queued), limit / safety
    return (longest, promised) if longest > promised else (tpot, limit)


def _longest_step_ms(work: RequestWork, engine: EngineState, prompts: float) -> float:
    """Return how long a step beside this request can be at most, with so many tokens to read.

    However fast prompts came lately, an engine reads no more of them in a step than its budget.
    """
    step, held = engine.step, engine.context_tokens + engine.queued_hit_tokens
    if step is None:
        return inf
    held += engine.queued_prefill_tokens + work.growth
    plain = step.a_s + step.b_s * (engine.sequences + work.choices) + step.c_s * held
    read = min(prompts, engine.prefill_budget_tokens - engine.sequences)
    return 1000.0 * engine.step_feedback * (plain + step.d_s * read)


def _sure_ms(reading_s: float, promised_ms: float, engine: EngineState) -> float:
    """By how much later than with the whole margin a long prompt's first token may be forecast.

    The margin is for what others do. Where reading the prompt itself takes two thirds of the
    promise, that part is known as well as the engine's pace, and a third of the margin is enough
    for it; up to half of the promise nothing is taken off. While the engine has a miss to spare and
    reads little, a prompt that reads for half of the promise needs no margin: none saves more by
    it, and few wait behind it.
    """
    sure, safety = 1000.0 * reading_s, engine.safety_ttft
    if 2.0 * sure < promised_ms:
        return 0.0
    if engine.spare_misses >= 1.0 and _reading_share(engine) < BUSY_READING:
        return max(0.0, 1.0 - safety) * promised_ms
    sure = min(sure, 4.0 * sure - 2.0 * promised_ms)
    return sure * (1.0 - safety / (1.0 - OWN_MARGIN * (1.0 - safety)))


def _reading_share(engine: EngineState) -> float:
    """Return how much of its time an engine reads prompts, by what was admitted lately."""
    return 0.0 if engine.step is None else engine.prefill_rate_tokens_per_s * engine.step.d_s


def _beside_others_ms(
    work: RequestWork, engine: EngineState, end: float, ttft: float, tpot: float
) -> float:
    """TPOT of an answer of a few tokens, where whoever comes behind it reads beside them.

    Prompts come in bursts, so behind it is what is queued now and what comes until its first
    token. This is the worst, so the promise itself is what it is held against.
    """
    step, promised = engine.step, work.tpot_ms
    room = engine.prefill_budget_tokens - engine.sequences
    if step is None or promised is None or room <= 0:
        return tpot
    behind = engine.queued_prefill_tokens + engine.prefill_rate_tokens_per_s * ttft / 1000.0
    filled = 1000.0 * engine.step_feedback * (end + step.d_s * min(room, behind))
    return max(tpot, filled) if filled > promised else tpot


def emptied(engine: EngineState) -> EngineState:
    """Return the engine as it would be with nothing to do, at its best and without a margin."""
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

    The same formula as in `forecast_engine`, where a call would cost more than the arithmetic.
    """
    hold = step.c_s
    if kv_capacity_tokens > 0:
        hold += step.a_s / kv_capacity_tokens
    held = output_mean * prompt_tokens + 0.5 * output_mean_square
    read_s = step.d_s * prompt_tokens + 0.5 * step.q_s * prompt_tokens * prompt_tokens
    return read_s + step.b_s * output_mean + hold * held
