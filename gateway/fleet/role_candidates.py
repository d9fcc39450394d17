"""Prefill and decode roles of candidates: prefill options, and engines kept for prefill."""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from gateway.fleet.fleet import Target
from gateway.fleet.prefix_index import PrefixIndex
from gateway.fleet.target_views import EngineView
from router.bid_price import BidPrice
from router.types import Candidate, EngineState, PrefillOption, RoutingRequest, TargetHealth


class PartnerViews(msgspec.Struct, frozen=True):
    """Views of the other engines of a pool, for one decision."""

    view: Callable[[int], EngineView]  # by row
    prefixes: PrefixIndex | None
    request: RoutingRequest
    now_s: float

    def state(self, target: Target) -> tuple[EngineState, BidPrice]:
        """Return an engine's state, including the prompt's prefix hits, and its bid price."""
        state, _, market = self.view(target.row).snapshot(self.now_s)
        if self.request.beginning.marks and self.prefixes is not None:
            _, trusted = self.prefixes.look_up(target.row, self.request)
            if trusted:
                state = replace(state, prefix_hit_tokens=trusted)
        return state, market


def with_roles(candidate: Candidate, target: Target, views: PartnerViews) -> Candidate:
    """Return the candidate of an engine in a pool with roles."""
    if target.role == "prefill":
        is_spare = not target.answers_too and _others_answer(target, views)
        return replace(candidate, is_apart=True, is_spare=is_spare)
    if target.role == "decode":
        options = tuple([_option(partner, views) for partner in target.partners])
        return replace(candidate, is_apart=True, prefillers=options)
    return replace(candidate, is_apart=True)


def _others_answer(target: Target, views: PartnerViews) -> bool:
    """Return whether another engine of the pool is healthy and can answer."""
    states = (views.state(partner)[0] for partner in target.partners)
    return any(state.health is TargetHealth.HEALTHY for state in states)


def _option(partner: Target, views: PartnerViews) -> PrefillOption:
    state, market = views.state(partner)
    setup_s, token_s = (0.0, 0.0) if partner.transfers is None else partner.transfers.expected
    price = partner.bid_price_pusd_per_s or market.bid_price
    return PrefillOption(partner.name, state, price, setup_s, token_s)
