"""Builder of candidate snapshots: frozen state and prices of all targets for one decision.

The decision reads nothing else. Target state comes from `target_views`, prices from the price book.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import msgspec

from gateway.clock import Clock
from gateway.fleet.attempt_bounds import (
    OUTPUT_BOUND_TOKENS,
    api_bound_pusd,
    expected_tokens,
    output_bound,
    own_bound_pusd,
)
from gateway.fleet.comparators import (
    Comparator,
    avoided_pusd,
    avoided_units_pusd,
    comparators_of,
)
from gateway.fleet.fleet import Target
from gateway.fleet.model_backoff import with_held_off
from gateway.fleet.output_cap import OutputCap, OutputCapRule
from gateway.fleet.output_overruns import TargetOverruns, allowed_overrun, stated_overrun
from gateway.fleet.prefix_index import PrefixIndex
from gateway.fleet.prompt_bound import (
    TargetPrompt,
    at_engine,
    bound_prompt,
    likely_prompt_tokens,
    measure_prompt,
    reachable_media,
)
from gateway.fleet.provider_caches import (
    NOTHING_CACHED,
    CachedPrompt,
    CacheForecast,
    is_for_an_hour,
)
from gateway.fleet.quote_memory import QuoteMemory
from gateway.fleet.role_candidates import PartnerViews, with_roles
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_views import ApiView, EngineView, LiveTargetViews, TargetViews
from gateway.kinds import KINDS
from gateway.kinds.prompt_media import PromptMedia
from gateway.kinds.service_tiers import own_tier
from gateway.kinds.spec import KindUnits
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceBook, lists_tier, tier_of
from ledger.prices.modellimits import CONTEXT_UNSTATED, ModelLimits
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import STANDARD, ReachableMedia
from router.filters import counted_tokens
from router.target_output import TargetOutput
from router.target_prompts import TargetPrompts
from router.types import ApiState, Candidate, RoutingRequest, TargetHealth

API_CONTEXT_TOKENS = CONTEXT_UNSTATED  # the provider refuses longer prompts itself
_HEALTHY = TargetHealth.HEALTHY


class CandidateSnapshot(msgspec.Struct, frozen=True):
    """One candidate of a decision, with the values that dispatch needs."""

    target: Target
    price: Price | None
    candidate: Candidate
    open_end: OutputCapRule | None = None  # set for requests without `max_tokens`
    # Prompt tokens expected in the prefix cache of the engine or the provider.
    prefix_tokens: int = 0
    allowance_tokens: int = 0  # per choice, may be billed on top of its limit
    # Charges that the price does not state; without those in `unlimited` the cost has no bound.
    unread: tuple[str, ...] = ()
    unlimited: tuple[str, ...] = ()
    asked_tier: str = ""  # service tier of the request; "": standard
    unlisted_tier: str = ""  # requested service tier that the price does not list
    limits: ModelLimits | None = None  # of the model, if known
    told_twice: bool = False  # the target needs the output limit under both names
    prompt_tokens_bound: int | None = None  # bound at this target, if not the request's own
    prompt: TargetPrompt | None = None  # parts of that bound, if not the request's own

    def prompt_bound(self, request: RoutingRequest) -> int:
        """Return the maximum tokens that the target can count for the prompt."""
        own = self.prompt_tokens_bound
        return request.prompt_tokens_bound if own is None else own

    def fit_to_budget(self, room_pusd: int) -> "CandidateSnapshot | None":
        """Return a copy with an output cap that fits the budget, or `None` if none fits."""
        if self.open_end is None:
            return None
        cap = self.open_end.cap(room_pusd)
        if cap.pusd > room_pusd:
            return None
        return msgspec.structs.replace(self, candidate=_cap_candidate(self.candidate, cap))


class PromptCaches(NamedTuple):
    """Prefix index of own engines, and forecast of the prompt caches of providers."""

    engines: PrefixIndex | None = None
    providers: CacheForecast | None = None


UNKNOWN_CACHES = PromptCaches()


class _RequestTerms(msgspec.Struct, frozen=True):
    """Values equal at every target; `tokens` is the expected usage, `output` its maximum."""

    request: RoutingRequest
    media: ReachableMedia
    tokens: TokenCounts
    output: int
    counted: int
    units: KindUnits | None  # units that quotes do not cover: searches, seconds
    avoided_pusd: int
    now_s: float
    prompt_media: PromptMedia | None
    predicted: int  # tokens of a predicted output; rejected ones are billed as output
    overruns: TargetOutput | None  # set if any target had an overrun


class CandidateBuilder:
    """Builder of candidate snapshots, with the prices in force by the wall clock.

    `limits` maps names of the price book to the models' limits. `overruns` holds what targets
    billed beyond their bounds. `board` may be any `TargetViews`; a what-if run passes simulated
    engines.
    """

    def __init__(
        self,
        board: SharedLoadTable | TargetViews,
        prices: PriceBook,
        *,
        stale_s: float,
        limits: Mapping[str, ModelLimits] | None = None,
        caches: PromptCaches = UNKNOWN_CACHES,
        overruns: TargetOverruns | None = None,
    ) -> None:
        seen = (
            LiveTargetViews(board, stale_s, None) if isinstance(board, SharedLoadTable) else board
        )
        self._sights: TargetViews = seen
        self._prefixes, self._cached = caches
        self._overruns = overruns or TargetOverruns(TargetOutput(), TargetPrompts())
        self._quotes = QuoteMemory(prices, limits or {})
        self._engines: dict[int, EngineView] = {}  # by row
        self._apis: dict[int, ApiView] = {}
        self._media: PromptMedia | None = None

    def with_media(self, media: PromptMedia | None) -> "CandidateBuilder":
        """Return a builder for a prompt with media parts; both share views and quotes."""
        if media is None:
            return self
        made = copy(self)
        made._media = media  # noqa: SLF001  (its own)
        return made

    def build(
        self,
        targets: Sequence[Target],
        request: RoutingRequest,
        compare_with: Sequence[str],
        *,
        rooms_pusd: Sequence[int | None],
        ceiling_pusd: int | None,
        clock: Clock,
    ) -> tuple[CandidateSnapshot, ...]:
        """Return one snapshot per target; budget and policy cap answers without `max_tokens`.

        `rooms_pusd` is the budget left at each target, `ceiling_pusd` the policy's cost cap.
        """
        now_s, tokens = clock.now_s(), expected_tokens(request)
        compared = self._quotes.quotes_at(compare_with, clock.wall_us())
        units = KINDS[request.kind].units
        if units is None:
            avoided = avoided_pusd(compared, request, tokens, self._cached, now_s)
        else:
            avoided = avoided_units_pusd(compared, request, tokens, units)
        asked = _RequestTerms(
            request,
            reachable_media(request),
            tokens,
            output_bound(request),
            counted_tokens(request),
            units,
            avoided,
            now_s,
            self._media,
            0 if self._media is None else self._media.predicted,
            self._overruns.output if self._overruns.output.has_overruns() else None,
        )
        frozen = tuple(
            [
                self._own(target, asked, room) if target.own else self._api(target, asked, room)
                for target, room in zip(targets, rooms_pusd, strict=True)
            ]
        )
        if request.max_tokens is not None:
            return frozen
        return tuple(_fit_output(snapshot, ceiling_pusd) for snapshot in frozen)

    def reprice(self, prices: PriceBook) -> None:
        """Use this price book from the next request on, and drop all remembered quotes."""
        self._quotes.reprice(prices)

    def prices_version(self, at_us: int) -> str:
        """Return a name of the prices in force, equal in every process of a host."""
        return self._quotes.version_at(at_us)

    def quote_of(self, target: Target, at_us: int) -> PriceQuote | None:
        """Return the price book's quote for an API's model at this time."""
        self._quotes.quotes_at((), at_us)
        return self._quotes.quote(target.price_name or target.name)

    def context_of(self, target: Target, now_s: float) -> int | None:
        """Return an own engine's context in tokens, as configured or reported; None: unknown."""
        return target.context_tokens or self._sight(target.row).snapshot(now_s)[1] or None

    def comparators(
        self, compare_with: Sequence[str], request: RoutingRequest, clock: Clock
    ) -> tuple[Comparator, ...]:
        """Return the comparators that have a price; `breakeven check` reports the others."""
        quotes = self._quotes.quotes_at(compare_with, clock.wall_us())
        return comparators_of(quotes, request, self._cached, clock.now_s())

    def _sight(self, row: int) -> EngineView:
        return self._engines.get(row) or self._engines.setdefault(row, self._sights.engine(row))

    def _own(self, target: Target, asked: _RequestTerms, room: int | None) -> CandidateSnapshot:
        row, request = target.row, asked.request
        state, stated, (bid, top, spread, _) = self._sight(row).snapshot(asked.now_s)
        cached = 0
        if request.beginning.marks and self._prefixes is not None:
            cached, trusted = self._prefixes.look_up(row, request)
            if trusted:
                state = replace(state, prefix_hit_tokens=trusted)
        known = target.context_tokens or stated
        context = known or OUTPUT_BOUND_TOKENS
        request = at_engine(request, asked.prompt_media, known)
        works = asked.units is None or asked.units.engine_work
        open_end = None
        if request.max_tokens is None:
            open_end = OutputCapRule(
                partial(own_bound_pusd, target.rate_pusd_per_hour, state, request),
                limit_tokens=max(1, context - likely_prompt_tokens(request)),
                unasked_tokens=context,
            )
        candidate = Candidate(
            target.name,
            target.pool,
            target.features,
            target.kinds,
            # The context of an engine that was never reached is unknown: its health rejects it.
            context if known or state.health is _HEALTHY else API_CONTEXT_TOKENS,
            True,  # internal; positional, because keywords double the cost of the call
            0,
            own_bound_pusd(target.rate_pusd_per_hour, state, request, asked.output) * works,
            asked.avoided_pusd,
            room,
            target.bid_price_pusd_per_s or bid,  # a configured bid price has precedence
            target.accepts_salt,
            state,
            None,  # no API
            None,  # no cap
            top,
            spread,
        )
        if target.is_apart:
            views = PartnerViews(self._sight, self._prefixes, request, asked.now_s)
            candidate = with_roles(candidate, target, views)
        return CandidateSnapshot(
            target,
            None,
            candidate,
            open_end,
            cached,
            prompt_tokens_bound=request.prompt_tokens_bound,
        )

    def _api(self, target: Target, asked: _RequestTerms, room: int | None) -> CandidateSnapshot:
        row, request, open_end = target.row, asked.request, None
        sight = self._apis.get(row) or self._apis.setdefault(row, self._sights.api(row))
        price = expected = bound = limits = prompt = None
        allowance, told_twice, hit, saves = 0, False, NOTHING_CACHED, 0
        if asked.overruns is not None:
            allowance = asked.overruns.allowance(
                target.name, request.team, thinks=request.asks_to_think
            )
            told_twice = asked.overruns.is_told_twice(target.name)
        unread: tuple[str, ...] = ()
        unlimited, unlisted = unread, ""
        tier = request.service_tier or (target.tier and tier_of(own_tier(request, target.tier)))
        quote = self._quotes.quote_for(request, target.price_name or target.name, tier)
        if quote is not None:
            price, limits = quote.price, quote.limits
            allowance = allowed_overrun(allowance, limits) if allowance else 0
            prompt = measure_prompt(request, asked.prompt_media, quote, target)
            if prompt is not None:
                seen = self._overruns.prompts.overrun(target.name, request.team)
                request = bound_prompt(request, prompt, seen)
            if quote.unread:
                unread, unlimited = quote.unread, quote.unlimited_terms(request.features)
            if price.terms.reasoning_outside:
                stated = stated_overrun(price.terms, limits, likely_prompt_tokens(request))
                allowance = max(allowance, stated)
            allowance += asked.predicted
            if tier and not lists_tier(price, tier):
                unlisted, tier = tier, ""
            if asked.units is None:
                expected = quote.cost_pusd(asked.tokens)
                if self._cached is not None and request.beginning.marks:
                    hit = self._cached.prompt_at(target.name, quote, asked.request, asked.now_s)
                    expected, saves = _cost_with_cache(quote, asked, hit, expected)
                bound = quote.bound_pusd(
                    request.prompt_tokens_bound,
                    (asked.output + allowance) * request.n,
                    media=asked.media,
                )
            else:
                tier, expected = "", asked.units.cost_pusd(asked.tokens, price, request)
                bound = asked.units.bound_pusd(price, request, asked.output)
            if request.max_tokens is None:
                likely = likely_prompt_tokens(request)
                longest = limits.max_output_tokens(likely) if limits else OUTPUT_BOUND_TOKENS
                open_end = OutputCapRule(
                    partial(api_bound_pusd, price, request, allowance_tokens=allowance),
                    limit_tokens=longest,
                )
        candidate = Candidate(
            target.name,
            None,
            target.features,
            target.kinds,
            API_CONTEXT_TOKENS,
            False,  # internal
            expected,
            bound,
            0,
            room,
            api=self._api_state_of(target, sight, asked),
            cached_tokens=hit.expected,
            cache_saves_pusd=saves,
        )
        return CandidateSnapshot(
            target, price, candidate, open_end, hit.readable,  # positional: see above
            allowance, unread, unlimited, "" if tier == STANDARD else tier, unlisted, limits,
            told_twice, request.prompt_tokens_bound, prompt,
        )  # fmt: skip

    def _api_state_of(self, target: Target, sight: ApiView, asked: _RequestTerms) -> ApiState:
        state = sight.snapshot(asked.now_s, asked.counted)
        if not target.shares_row:
            return state
        wait_s = self._sights.held_off_s(target.row, target.upstream_model, asked.now_s)
        return with_held_off(state, wait_s) if wait_s else state


def _cost_with_cache(
    quote: PriceQuote, asked: _RequestTerms, hit: CachedPrompt, plain_pusd: int
) -> tuple[int, int]:
    """Return the expected cost and the part that the prompt cache saves, in pico-USD."""
    if not (hit.expected or hit.written):
        return plain_pusd, 0
    for_an_hour = is_for_an_hour(asked.request.beginning)
    expected = quote.cached_cost_pusd(hit.split(asked.tokens, for_an_hour=for_an_hour))
    if not hit.expected:
        return expected, 0
    cold = hit._replace(expected=0, written=hit.written + hit.expected if hit.written else 0)
    return expected, quote.cached_cost_pusd(
        cold.split(asked.tokens, for_an_hour=for_an_hour)
    ) - expected


def _fit_output(frozen: CandidateSnapshot, ceiling_pusd: int | None) -> CandidateSnapshot:
    """Set the longest output that budget and policy allow, where the client set no limit."""
    if frozen.open_end is None:
        return frozen
    limits = [
        limit for limit in (frozen.candidate.budget_room_pusd, ceiling_pusd) if limit is not None
    ]
    cap = frozen.open_end.cap(min(limits, default=None))
    return msgspec.structs.replace(frozen, candidate=_cap_candidate(frozen.candidate, cap))


def _cap_candidate(candidate: Candidate, cap: OutputCap) -> Candidate:
    """Return the candidate with this output cap, which also limits its expected cost."""
    expected = candidate.expected_pusd
    if expected is not None:
        expected = min(expected, cap.pusd)
    return replace(candidate, expected_pusd=expected, bound_pusd=cap.pusd, output_cap=cap.tokens)
