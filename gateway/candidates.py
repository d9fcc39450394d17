"""Freeze every target's state and price into `router.Candidate`s: the decision sees nothing else.

Engine state is dead reckoning: the sum of all workers' own events on the board, plus what the
last scrape showed beyond them (foreign traffic). API state is what the workers saw of it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.clock import Clock
from gateway.experience import api_state
from gateway.fleet import Target
from gateway.openended import Cap, OpenEnd
from gateway.slots import HEALTHS, Board
from ledger.modellimits import ModelLimits
from ledger.prices import Price, PriceBook, bound_pusd, cost_pusd
from ledger.records import Tokens
from router.filters import CONTEXT_MARGIN, counted_tokens
from router.types import Candidate, EngineState, Health, Request, StepModel
from router.value import value

OUTPUT_BOUND_TOKENS = 4096  # the longest answer of a model whose limit nobody stated
HEARD_LIMIT_S = 1.0  # a sequence not heard of for longer may be anywhere: all it may hold counts
API_CONTEXT_TOKENS = 1_000_000  # the provider itself refuses what is longer than its model's limit
PRICED_LIMIT = 4096  # names whose price is remembered while no price of the book changes
_HEALTHS = tuple(Health(word) for word in HEALTHS)
_HEALTHY = Health.HEALTHY


@value(frozen=True, slots=True)
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
        return replace(self, candidate=_capped(self.candidate, cap))


@value(frozen=True, slots=True)
class _Asked:
    """What is the same at every target; `tokens` is the expected use, `output` bounds a choice."""

    request: Request
    tokens: Tokens
    output: int
    counted: int
    avoided_pusd: int
    now_s: float
    at_us: int


class Candidates:
    """Builds the frozen view; prices are those in force by the wall clock.

    `limits`: what models of APIs give at most, by the names of the price book; `shunned`: whether
    an engine with these loads is left alone for its failures.
    """

    def __init__(
        self,
        board: Board,
        prices: PriceBook,
        *,
        stale_s: float,
        limits: Mapping[str, ModelLimits] | None = None,
        shunned: Callable[[int, Sequence[float], float], bool] | None = None,
    ) -> None:
        self._board = board
        self._shunned = shunned
        self._prices = prices
        self._stale_s = stale_s
        self._limits = limits or {}
        self._priced: dict[str, Price | None] = {}
        self._priced_us = (0, 0)  # from and until when that holds

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
        at_us, tokens = clock.wall_us(), expected_tokens(request)
        compared = self.comparators(compare_with, at_us)
        asked = _Asked(
            request,
            tokens,
            output_bound(request),
            counted_tokens(request),
            min([cost_pusd(tokens, price) for price in compared], default=0),
            clock.now_s(),
            at_us,
        )
        frozen = tuple(
            [
                self._own(target, asked, room(target))
                if target.own
                else self._api(target, asked, room(target))
                for target in targets
            ]
        )
        if request.max_tokens is not None:
            return frozen
        return tuple(_fitted(one, ceiling_pusd) for one in frozen)

    def comparators(self, compare_with: Sequence[str], at_us: int) -> tuple[Price, ...]:
        """The comparators that have a price; the others are flagged by `breakeven check`."""
        found = [self._price(name, at_us) for name in compare_with]
        return tuple([price for price in found if price is not None])

    def _price(self, name: str, at_us: int) -> Price | None:
        since_us, until_us = self._priced_us
        if not since_us <= at_us < until_us:
            self._priced_us = self._prices.unchanged_us(at_us)
            self._priced = {}
        if name in self._priced:
            return self._priced[name]
        price = self._prices.find(name, at_us)
        if len(self._priced) < PRICED_LIMIT:
            self._priced[name] = price
        return price

    def _own(self, target: Target, asked: _Asked, room: int | None) -> Frozen:
        board, row, request = self._board, target.row, asked.request
        published, loads = board.published(row), board.loads(row)
        state = engine_state(published, loads, asked.now_s, self._stale_s, life=board.life(row))
        if self._shunned is not None and self._shunned(row, loads, asked.now_s):
            state = replace(state, health=Health.DOWN)
        if crowded(state):
            residents = board.residents(row, now_s=asked.now_s, limit_s=HEARD_LIMIT_S)
            state = replace(state, residents=residents)
        *_, stated, bid, _ = published
        known = target.context_tokens or int(stated)
        context = known or OUTPUT_BOUND_TOKENS
        open_end = None
        if request.max_tokens is None:
            open_end = OpenEnd(
                partial(own_bound_pusd, target, state, request),
                limit_tokens=max(1, context - likely_prompt_tokens(request)),
                unasked_tokens=context,
            )
        candidate = Candidate(
            target.name,
            target.pool,
            target.features,
            target.kinds,
            # What nobody has yet met may be of any size: not its context, its health refuses.
            context if known or state.health is _HEALTHY else API_CONTEXT_TOKENS,
            True,  # internal; all by place, as names cost as much again
            0,
            own_bound_pusd(target, state, request, asked.output),
            asked.avoided_pusd,
            room,
            float(bid or target.bid_price_pusd_per_s),
            target.accepts_salt,
            state,
        )
        return Frozen(target, None, candidate, open_end)

    def _api(self, target: Target, asked: _Asked, room: int | None) -> Frozen:
        request, open_end = asked.request, None
        price = self._price(target.price_name or target.name, asked.at_us)
        if price is not None and request.max_tokens is None:
            limits = self._limits.get(price.name.partition("#")[0])
            longest = limits.longest(request.prompt_tokens_bound) if limits else OUTPUT_BOUND_TOKENS
            open_end = OpenEnd(partial(api_bound_pusd, price, request), limit_tokens=longest)
        candidate = Candidate(
            target.name,
            None,
            target.features,
            target.kinds,
            target.context_tokens or API_CONTEXT_TOKENS,
            False,  # internal
            None if price is None else cost_pusd(asked.tokens, price),
            None if price is None else api_bound_pusd(price, request, asked.output),
            0,
            room,
            api=api_state(self._board, target.row, asked.now_s, needed_tokens=asked.counted),
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
    return replace(frozen, candidate=_capped(frozen.candidate, cap))


def _capped(candidate: Candidate, cap: Cap) -> Candidate:
    """A shorter answer bounds what is expected, too."""
    expected = candidate.expected_pusd
    if expected is not None:
        expected = min(expected, cap.pusd)
    return replace(candidate, expected_pusd=expected, bound_pusd=cap.pusd, output_cap=cap.tokens)


def expected_tokens(request: Request) -> Tokens:
    """The estimate, and the mean output of its like: never more than the client allows."""
    mean = request.output.mean
    if request.max_tokens is not None:
        mean = min(mean, request.max_tokens)
    return Tokens(input=request.prompt_tokens, output=round(mean * request.n))


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
    (
        updated, word, capacity, block, foreign, foreign_kv, a, b, c, d, t0, feedback,
        safety_ttft, safety_tpot, prefill_rate, most, budget, _, _, seen_of,
    ) = published  # fmt: skip
    sequences, context, queued, promised, *_ = loads
    age = now_s - updated if updated else math.inf
    health = _HEALTHS[int(word)]
    if health is _HEALTHY:
        if age > stale_s:
            health = Health.UNKNOWN
        elif seen_of != life:
            health = Health.LOADING
    held = context + queued
    return EngineState(
        health,
        StepModel(a, b, c, d, t0) if a > 0.0 else None,
        int(sequences + foreign),
        0,  # waiting: an engine's own queue is within what runs
        context + foreign_kv,
        queued,
        int(capacity),
        held + foreign_kv,
        max(0.0, promised - held),
        int(block) or 1,
        int(most),
        int(budget),
        feedback or 1.0,
        safety_ttft or 0.85,
        safety_tpot or 0.80,
        prefill_rate,
        age_s=age,
    )
