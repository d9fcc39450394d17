"""Values that a decision is made of. Frozen, plain, standard library only.

These classes contain everything that the router knows: the gateway freezes live state into them
(`gateway.fleet.candidates`), and `router.decide` reads nothing else. Money is integer pico-USD,
times are seconds unless the name ends in a unit, token counts are tokens.

Values built for every request are `value` classes, verdicts named tuples: both cheap to build.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import NamedTuple

from router.content import ContentTerms
from router.estimator_rules import CONTEXT_MARGIN
from router.prompts import PromptPrefix, RequestUnits
from router.reasons import Reason, Rejection
from router.request_kinds import RequestKind
from router.value import value


class Feature(StrEnum):
    """A feature that a request may use and that a target must declare."""

    TOOLS = "tools"
    JSON_SCHEMA = "json_schema"
    IMAGES = "images"
    LOGPROBS = "logprobs"
    N = "n"
    REASONING = "reasoning"
    STORE = "store"  # the provider keeps the answer
    MEDIA_URLS = "media_urls"  # the target fetches URLs in the request
    HOSTED_TOOLS = "hosted_tools"  # searches and tools that the target runs, for fees of its own
    FILES = "files"  # the target reads documents that are sent in a conversation
    MESSAGES = "messages"  # Anthropic Messages content that has no form in chat


class Residency(StrEnum):
    ANY = "any"
    INTERNAL_ONLY = "internal_only"


class TargetHealth(StrEnum):
    """Health of a target. `UNKNOWN` is a missing or stale metric, and rejects the target."""

    HEALTHY = "healthy"
    LOADING = "loading"
    DRAINING = "draining"
    DOWN = "down"
    UNKNOWN = "unknown"
    OFF = "off"  # stopped on purpose, temporarily


_HEALTHY = TargetHealth.HEALTHY  # an attribute of the enumeration costs ten times as much


class InfeasibleAction(StrEnum):
    """The action of a policy when no candidate is feasible."""

    QUEUE = "queue"
    BEST_EFFORT = "best_effort"
    REJECT = "reject"


class Preference(NamedTuple):
    """Candidates that go first while one of them is feasible, and the reason to report."""

    names: frozenset[str]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Slo:
    """Latency targets; `None`: not promised. `strict` filters APIs that would likely miss."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    attainment: float = 0.95
    strict: bool = False


@value(frozen=True, slots=True)
class OutputMoments:
    """Running moments of output length in tokens for this (tenant, model, prompt size).

    `p95` is infinite if limits ended too many answers to know their full length. `brief_odds` is
    the frequency of brief answers after prompts of this size over that of this tenant and model; 1
    if there is no difference.
    """

    count: int
    mean: float
    mean_square: float
    p95: float
    brief_odds: float = 1.0


@value(frozen=True, slots=True)
class RoutingRequest:
    """The facts of a request that the decision needs.

    `prompt_tokens` is the calibrated estimate, `prompt_tokens_bound` an upper bound. `max_tokens`
    is the client's limit per choice (`None`: the model's limit).
    """

    kind: RequestKind
    model: str
    prompt_tokens: int
    prompt_tokens_bound: int
    max_tokens: int | None
    output: OutputMoments
    n: int = 1
    features: frozenset[Feature] = frozenset()
    residency: Residency = Residency.ANY
    sticky_target: str | None = None
    salted: bool = False  # the tenant's prefix cache is isolated: the target must accept a salt
    extent: RequestUnits | None = None  # of kinds that have no conversation
    preferred: Preference | None = None  # after the session's own target
    barred: Mapping[str, Rejection] | None = field(default=None, hash=False)  # by candidate
    beginning: PromptPrefix = PromptPrefix()  # for prefix cache lookups of own engines
    has_sound: bool = False  # in the prompt or in the answer: sound has its own prices
    without_pictures: bool = False  # no pictures in the answer: pictures have their own prices
    service_tier: str = ""  # as the client set it, in the terms of price lists; "": not set
    text_prompt: bool = False  # no part of the prompt can be sound
    asks_to_think: bool = False  # its thoughts may be billed beside its limit
    searches_limit: int = 0  # maximum searches that its target may make; 0: no limit stated
    team: str = ""  # overruns billed to one team alone raise no hold of others
    spills: bool = False  # a later stage of its model has an API if nothing here can serve
    kept_for: str = ""  # content kinds that keep it inside; "": none
    context_margin: float = CONTEXT_MARGIN  # factor on `prompt_tokens` for estimate errors


@value(frozen=True, slots=True)
class StepModel:
    """Fitted step time: `a + b*sequences + c*context_tokens + d*prefill_tokens`, seconds.

    `t0_s` is the constant part of TTFT outside the steps; `q_s` is the time per pair of a prompt
    token and an earlier token. Fitted per engine at warm-up by `backends.engine.profile`.
    """

    a_s: float
    b_s: float
    c_s: float
    d_s: float
    t0_s: float
    q_s: float = 0.0


@value(frozen=True, slots=True)
class EngineState:
    """Current state of one own engine, from the gateway's events, corrected by each scrape.

    `kv_used_tokens` includes what running requests hold. `kv_promised_tokens` is how much admitted
    requests may still grow (their promise minus what they hold). Capacity excludes the block that
    the engine reserves. `residents` are (held, final, slack) tokens of running sequences whose
    growth is known: each holds between `held` and `held + slack`, and their part of used and
    promised tokens counts by when it is needed. The engine has read the first prompt of its queue
    for `head_since_s`; `head_tokens` is that prompt's expected length, the size-weighted mean of
    the queue, since a long prompt is at the head for longer. `queued_hit_tokens` of queued prompts
    are in the prefix cache: they are held, not read, and in no other count of the queue.
    `step_feedback` is observed over predicted step time. `safety_*` scale the SLO to track
    attainment. The last fields are derived, and computed once: a state is built when the engine's
    cells change, and read for every request.
    """

    health: TargetHealth
    step: StepModel | None
    running: int
    waiting: int
    context_tokens: float
    queued_prefill_tokens: float
    kv_capacity_tokens: int
    kv_used_tokens: float
    kv_promised_tokens: float
    kv_block_tokens: int
    max_num_seqs: int
    prefill_budget_tokens: int
    step_feedback: float = 1.0
    safety_ttft: float = 0.85
    safety_tpot: float = 0.80
    prefill_rate_tokens_per_s: float = 0.0
    tightest_ttft_ms: float | None = None
    tightest_tpot_ms: float | None = None
    prefix_hit_tokens: int = 0
    age_s: float = 0.0
    residents: tuple[tuple[float, float, float], ...] = ()
    head_tokens: float = 0.0
    head_since_s: float = 0.0
    queued_hit_tokens: float = 0.0
    spare_misses: float = 0.0  # first tokens that may be late while attainment is kept
    spare_brief_misses: float = 0.0  # likewise times per token of answers of a few tokens
    sane: bool = field(init=False, repr=False, compare=False)  # numbers that engines can have
    # sane, healthy, with a cache and a step model
    ready: bool = field(init=False, repr=False, compare=False)
    sequences: int = field(init=False, repr=False, compare=False)
    kv_taken_tokens: float = field(init=False, repr=False, compare=False)  # used and promised
    # a step of the batch as it is; like the next two 0 without a step model
    step_s: float = field(init=False, repr=False, compare=False)
    # a token of context for one step: its own time and its share of the whole
    hold_s: float = field(init=False, repr=False, compare=False)
    read_tokens: float = field(init=False, repr=False, compare=False)  # of what is queued, by now
    decoding: float = field(init=False, repr=False, compare=False)  # time that prefill leaves

    def __post_init__(self) -> None:
        step, capacity, running = self.step, self.kv_capacity_tokens, self.running
        used, promised, context = self.kv_used_tokens, self.kv_promised_tokens, self.context_tokens
        queued, rate, feedback = (
            self.queued_prefill_tokens, self.prefill_rate_tokens_per_s, self.step_feedback,
        )  # fmt: skip
        sequences = running + self.waiting
        # NaN fails each comparison.
        sane = (
            used >= 0.0 <= context
            and queued >= 0.0 <= promised
            and used + context + queued < inf
            and running >= 0 <= self.waiting
            and feedback > 0.0 <= rate
            and inf > self.safety_ttft > 0.0 < self.safety_tpot < inf
            and self.kv_block_tokens > 0
            and (step is None or (step.b_s >= 0.0 <= step.c_s and step.d_s >= 0.0 <= step.t0_s))
        )
        step_s = hold_s = decoding = read = 0.0
        if step is not None:
            step_s = step.a_s + step.b_s * sequences + step.c_s * context
            hold_s = step.c_s + step.a_s / capacity if capacity > 0 else step.c_s
            decoding = 1.0 - feedback * step.d_s * rate
            if self.head_since_s > 0.0 < self.head_tokens and feedback > 0.0:
                room = max(1, self.prefill_budget_tokens - sequences)
                token_s = feedback * (step.d_s + step_s / room)
                if token_s > 0.0:
                    read = min(self.head_tokens, queued, self.head_since_s / token_s)
        ready = sane and self.health is _HEALTHY and step is not None and capacity > 0
        (
            self.sane, self.ready, self.sequences, self.kv_taken_tokens,  # type: ignore[misc]  # frozen from here on
            self.step_s, self.hold_s, self.read_tokens, self.decoding,  # type: ignore[misc]  # as above
        ) = sane, ready, sequences, used + promised, step_s, hold_s, read, decoding  # fmt: skip


@value(frozen=True, slots=True)
class PrefillOption:
    """An engine that may read a request's prompt for the candidate's engine, which answers.

    Moving the prompt's KV takes `setup_s` plus `token_s` for each token. `engine` is its current
    state, `bid_price_pusd_per_s` the value of its time.
    """

    name: str
    engine: EngineState
    bid_price_pusd_per_s: float
    setup_s: float
    token_s: float


class PrefillForecast(NamedTuple):
    """Forecast of reading a prompt on another engine than the one that answers.

    Times, `load` and `engine_seconds` are those of that engine alone. `decode_load` is the load of
    the engine that answers. Until the transfer ends, the KV is held on both engines.
    """

    name: str
    ttft_ms: float
    load: float
    engine_seconds: float
    kv_promise_tokens: int
    transfer_s: float
    decode_load: float
    bid_price_pusd_per_s: float


@value(frozen=True, slots=True)
class ApiState:
    """Current state of one external target: learned latency, circuit and rate limits.

    A median of `None` means that nothing was observed: the prior then gives the miss probability.
    `requests_left` and `tokens_left` are `None` if the provider does not report them.
    `retry_after_s` is the time until the circuit closes, or until the limits allow this request.
    """

    health: TargetHealth = TargetHealth.HEALTHY
    ttft_median_ms: float | None = None
    ttft_sigma: float = 0.35
    tpot_median_ms: float | None = None
    tpot_sigma: float = 0.30
    observations: int = 0
    circuit_open: bool = False
    requests_left: int | None = None
    tokens_left: int | None = None
    retry_after_s: float = 0.0
    ready: bool = field(init=False, repr=False, compare=False)  # healthy, open to any request

    def __post_init__(self) -> None:
        limited = self.requests_left is not None or self.tokens_left is not None
        self.ready = (  # type: ignore[misc]  # frozen from here on
            self.health is _HEALTHY and not self.circuit_open and not limited
        )


@value(frozen=True, slots=True)
class Candidate:
    """One target frozen for one decision.

    `name` is `pool:NAME/REPLICA` or `PROVIDER/MODEL`. Exactly one of `engine` and `api` is set.
    `expected_pusd` is the expected marginal API cost of the request there (0 for own engines: the
    GPU-hour is sunk); `avoided_pusd` of own engines is the price of the cheapest comparator.
    `bound_pusd` is the hold's upper bound; `budget_room_pusd` the least amount left in all hard
    scopes (`None`: no hard budget). Prices of `None` mean unpriced. `output_cap` is the answer
    length that money allows a request without `max_tokens` (`None`: not capped).
    `top_density_pusd_per_s` and `density_spread` are D98 and D90/D10 of the pool's recent demand,
    which bend its bid price. `cached_tokens` of the prompt are expected in an API's prompt cache;
    `expected_pusd` already includes their saving `cache_saves_pusd`. `prefillers` may read prompts
    for it. `is_apart`: its pool has engines with roles. `is_spare`: it reads prompts for other
    engines that can serve as well.
    """

    name: str
    pool: str | None
    features: frozenset[Feature]
    kinds: frozenset[RequestKind]
    context_tokens: int
    internal: bool
    expected_pusd: int | None
    bound_pusd: int | None
    avoided_pusd: int = 0
    budget_room_pusd: int | None = None
    bid_price_pusd_per_s: float = 0.0
    accepts_salt: bool = True
    engine: EngineState | None = None
    api: ApiState | None = None
    output_cap: int | None = None
    top_density_pusd_per_s: float = 0.0
    density_spread: float = 1.0
    cached_tokens: int = 0
    cache_saves_pusd: int = 0
    prefillers: tuple[PrefillOption, ...] = ()
    is_apart: bool = False
    is_spare: bool = False


@value(frozen=True, slots=True)
class Policy:
    """The part of a routing policy that the decision uses, after matching.

    `kv_headroom_floor` is the ratio of KV capacity that must stay free after admission; `None`
    disables the KV filter. `penalty_pusd` is the price of one SLO miss. `content` has the actions
    on content kinds, which are found before the decision and are in `kept_for` there.
    """

    name: str
    slo: Slo = field(default_factory=Slo)
    kv_headroom_floor: float | None = 0.10
    penalty_pusd: int = 0
    max_cost_pusd: int | None = None
    otherwise: InfeasibleAction = InfeasibleAction.REJECT
    residency: Residency = Residency.ANY
    content: ContentTerms = ()


class Verdict(NamedTuple):
    """Result for one candidate: its reason and the numbers behind it (`None`: not computed).

    The fields from `ttft_ms` on are those of its forecast.
    """

    candidate: Candidate
    feasible: bool
    reason: Reason
    detail: str = ""
    density_pusd_per_s: float | None = None  # D = v / r
    objective_pusd: float | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    kv_ratio: float | None = None
    load: float | None = None  # z: the worst of its predictions, each as a ratio to its limit
    miss_probability: float | None = None
    engine_seconds: float | None = None  # r
    kv_promise_tokens: int = 0  # own engines: the maximum that the request may hold there,
    kv_free_tokens: float = 0.0  # and the tokens left free if all promises are kept
    prefill: PrefillForecast | None = None  # where another engine reads the prompt


class Decision(NamedTuple):
    """The feasible candidates in the order to try them, and every candidate's verdict.

    `order` is empty if nothing is feasible and the policy is not `best_effort`; `otherwise` then
    says what to do. `reason` is that of the chosen verdict, or else the most frequent temporary
    rejection, else `budget`, else a permanent one.
    """

    policy: str
    order: tuple[Verdict, ...]
    verdicts: tuple[Verdict, ...]
    reason: Reason
    otherwise: InfeasibleAction

    @property
    def first_choice(self) -> Verdict | None:
        return self.order[0] if self.order else None
