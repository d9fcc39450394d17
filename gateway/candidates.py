"""Freeze every target's state and price into `router.Candidate`s: the decision sees nothing else.

Engine state is dead reckoning: the sum of all workers' own events on the board, plus what the
last scrape showed beyond them (foreign traffic). API state is what the workers saw of it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gateway.clock import Clock
from gateway.experience import api_state
from gateway.fleet import Target
from gateway.openended import OpenEnd
from gateway.slots import HEALTHS, Board, Load, Published
from ledger.modellimits import ModelLimits
from ledger.prices import Price, PriceBook, bound_pusd, cost_pusd
from ledger.records import Tokens
from router.filters import CONTEXT_MARGIN, counted_tokens
from router.types import Candidate, EngineState, Health, Request, StepModel

OUTPUT_BOUND_TOKENS = 4096  # the longest answer of a model whose limit nobody stated
HEARD_LIMIT_S = 1.0  # a sequence not heard of for longer may be anywhere: all it may hold counts
API_CONTEXT_TOKENS = 1_000_000  # the provider itself refuses what is longer than its model's limit


@dataclass(frozen=True, slots=True)
class Frozen:
    """One candidate with what dispatch needs to act on it."""

    target: Target
    price: Price | None
    candidate: Candidate
    open_end: OpenEnd | None = None  # of a request without `max_tokens`

    def within(self, room_pusd: int) -> "Frozen | None":
        """The same with an answer short enough for the room; `None` when none is."""
        if self.open_end is None:
            return None
        cap = self.open_end.cap(room_pusd)
        if cap.pusd > room_pusd:
            return None
        candidate = replace(self.candidate, bound_pusd=cap.pusd, output_cap=cap.tokens)
        return replace(self, candidate=candidate)


class Candidates:
    """Builds the frozen view; prices are those in force by the wall clock.

    `limits`: what models of APIs give at most, by the names of the price book.
    """

    def __init__(
        self,
        board: Board,
        prices: PriceBook,
        *,
        stale_s: float,
        limits: Mapping[str, ModelLimits] | None = None,
    ) -> None:
        self._board = board
        self._prices = prices
        self._stale_s = stale_s
        self._limits = limits or {}

    def freeze(
        self,
        targets: Sequence[Target],
        request: Request,
        compare_with: Sequence[str],
        *,
        room: Callable[[Target], int | None],
        ceiling_pusd: int | None,
        clock: Clock,
    ) -> tuple[Frozen, ...]:
        """`room`: what budgets leave at a target; `ceiling_pusd`: the policy's cap on one request.

        Both shorten the answer to a request that sets no limit itself.
        """
        now_s, at_us = clock.now_s(), clock.wall_us()
        avoided = self._avoided(compare_with, request, at_us)
        return tuple(
            _fitted(
                self._own(target, request, avoided, room(target), now_s)
                if target.own
                else self._api(target, request, room(target), now_s, at_us),
                ceiling_pusd,
            )
            for target in targets
        )

    def comparators(self, compare_with: Sequence[str], at_us: int) -> tuple[Price, ...]:
        """The comparators that have a price; the others are flagged by `breakeven check`."""
        found = (self._prices.find(name, at_us) for name in compare_with)
        return tuple(price for price in found if price is not None)

    def _avoided(self, compare_with: Sequence[str], request: Request, at_us: int) -> int:
        costs = [
            cost_pusd(expected_tokens(request), price)
            for price in self.comparators(compare_with, at_us)
        ]
        return min(costs, default=0)

    def _own(
        self, target: Target, request: Request, avoided: int, room: int | None, now_s: float
    ) -> Frozen:
        published = self._board.published(target.row)
        loads = self._board.loads(target.row)
        state = engine_state(
            published, loads, now_s, self._stale_s, life=self._board.life(target.row)
        )
        if crowded(state):
            residents = self._board.residents(target.row, now_s=now_s, limit_s=HEARD_LIMIT_S)
            state = replace(state, residents=residents)
        context = target.context_tokens or int(published[Published.CONTEXT_TOKENS])
        bid = published[Published.BID_PRICE_PUSD_PER_S] or target.bid_price_pusd_per_s
        context = context or OUTPUT_BOUND_TOKENS
        open_end = None
        if request.max_tokens is None:
            open_end = OpenEnd(
                partial(own_bound_pusd, target, state, request),
                limit_tokens=max(1, context - likely_prompt_tokens(request)),
                unasked_tokens=context,
            )
        candidate = Candidate(
            name=target.name,
            pool=target.pool,
            features=target.features,
            kinds=target.kinds,
            context_tokens=context,
            internal=True,
            expected_pusd=0,
            bound_pusd=own_bound_pusd(target, state, request, output_bound(request)),
            avoided_pusd=avoided,
            budget_room_pusd=room,
            bid_price_pusd_per_s=float(bid),
            accepts_salt=target.accepts_salt,
            engine=state,
        )
        return Frozen(target, None, candidate, open_end)

    def _api(
        self, target: Target, request: Request, room: int | None, now_s: float, at_us: int
    ) -> Frozen:
        price = self._prices.find(target.price_name or target.name, at_us)
        open_end = None
        if price is not None and request.max_tokens is None:
            limits = self._limits.get(price.name.partition("#")[0])
            longest = limits.longest(request.prompt_tokens_bound) if limits else OUTPUT_BOUND_TOKENS
            open_end = OpenEnd(partial(api_bound_pusd, price, request), limit_tokens=longest)
        candidate = Candidate(
            name=target.name,
            pool=None,
            features=target.features,
            kinds=target.kinds,
            context_tokens=target.context_tokens or API_CONTEXT_TOKENS,
            internal=False,
            expected_pusd=None if price is None else cost_pusd(expected_tokens(request), price),
            bound_pusd=None
            if price is None
            else api_bound_pusd(price, request, output_bound(request)),
            budget_room_pusd=room,
            api=api_state(self._board, target.row, now_s, needed_tokens=counted_tokens(request)),
        )
        return Frozen(target, price, candidate, open_end)


def _fitted(frozen: Frozen, ceiling_pusd: int | None) -> Frozen:
    """With the longest answer that budgets and policy afford, where the client set no limit."""
    if frozen.open_end is None:
        return frozen
    limits = [
        limit for limit in (frozen.candidate.budget_room_pusd, ceiling_pusd) if limit is not None
    ]
    cap = frozen.open_end.cap(min(limits, default=None))
    candidate = replace(frozen.candidate, bound_pusd=cap.pusd, output_cap=cap.tokens)
    return replace(frozen, candidate=candidate)


def expected_tokens(request: Request) -> Tokens:
    """What the request is expected to use: the estimate and the mean output of its like."""
    return Tokens(input=request.prompt_tokens, output=round(request.output.mean * request.n))


def output_bound(request: Request) -> int:
    """The most output tokens one choice may produce, where no target is looked at."""
    return OUTPUT_BOUND_TOKENS if request.max_tokens is None else request.max_tokens


def likely_prompt_tokens(request: Request) -> int:
    """The prompt with room for the estimate's error, as the filter of the context counts it."""
    return min(request.prompt_tokens_bound, math.ceil(CONTEXT_MARGIN * request.prompt_tokens))


def api_bound_pusd(price: Price, request: Request, output_tokens: int) -> int:
    """The most an API can charge with this many output tokens in each choice."""
    return bound_pusd(
        price,
        prompt_tokens=request.prompt_tokens_bound,
        output_tokens=output_tokens,
        n=request.n,
        audio=False,
    )


def own_bound_pusd(target: Target, state: EngineState, request: Request, output_tokens: int) -> int:
    """The most an own request can be charged: its engine-seconds with this much output.

    Alone in the engine each token costs a full step, so no share of a batch exceeds this.
    """
    step = state.step
    if target.rate_pusd_per_hour is None or step is None:
        return 0
    prompt, output = request.prompt_tokens_bound, output_tokens * request.n
    seconds = (
        step.t0_s
        + step.d_s * prompt
        + output * (step.a_s + step.b_s + step.c_s * (prompt + output))
    )
    return math.ceil(seconds * state.step_feedback * target.rate_pusd_per_hour / 3600)


def crowded(state: EngineState) -> bool:
    """Whether it matters when each promise is due: half of the cache is spoken for."""
    return 2 * (state.kv_used_tokens + state.kv_promised_tokens) > state.kv_capacity_tokens


def engine_state(
    published: Sequence[float],
    loads: Sequence[float],
    now_s: float,
    stale_s: float,
    *,
    life: float,
) -> EngineState:
    """Dead reckoning: own events plus foreign load; stale or missing metrics are `UNKNOWN`.

    `life` is what the parent says serves at this moment: metrics of another one are the past.
    """
    updated = published[Published.UPDATED_S]
    age = now_s - updated if updated else math.inf
    health = Health(HEALTHS[int(published[Published.HEALTH])])
    if health is Health.HEALTHY and age > stale_s:
        health = Health.UNKNOWN
    if health is Health.HEALTHY and published[Published.LIFE] != life:
        health = Health.LOADING
    step = None
    if published[Published.A_S] > 0.0:
        step = StepModel(
            a_s=published[Published.A_S],
            b_s=published[Published.B_S],
            c_s=published[Published.C_S],
            d_s=published[Published.D_S],
            t0_s=published[Published.T0_S],
        )
    foreign = published[Published.FOREIGN_SEQUENCES]
    foreign_kv = published[Published.FOREIGN_KV_TOKENS]
    context = loads[Load.CONTEXT_TOKENS]
    held = context + loads[Load.QUEUED_PREFILL_TOKENS]
    return EngineState(
        health=health,
        step=step,
        running=int(loads[Load.SEQUENCES] + foreign),
        waiting=0,
        context_tokens=context + foreign_kv,
        queued_prefill_tokens=loads[Load.QUEUED_PREFILL_TOKENS],
        kv_capacity_tokens=int(published[Published.KV_CAPACITY_TOKENS]),
        kv_used_tokens=held + foreign_kv,
        kv_promised_tokens=max(0.0, loads[Load.PROMISED_TOKENS] - held),
        kv_block_tokens=int(published[Published.KV_BLOCK_TOKENS]) or 1,
        max_num_seqs=int(published[Published.MAX_NUM_SEQS]),
        prefill_budget_tokens=int(published[Published.PREFILL_BUDGET_TOKENS]),
        step_feedback=published[Published.STEP_FEEDBACK] or 1.0,
        safety_ttft=published[Published.SAFETY_TTFT] or 0.85,
        safety_tpot=published[Published.SAFETY_TPOT] or 0.80,
        prefill_rate_tokens_per_s=published[Published.PREFILL_RATE],
        age_s=age,
    )
