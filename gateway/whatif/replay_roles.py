"""A request of a what-if whose prompt is read by another engine than the one that answers.

As in production, the engine that answers has its promise from the dispatch on, and the engine that
reads keeps the prompt's KV until the first token. The transfer takes the forecast time.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gateway.fleet.fleet import Target
from gateway.whatif.replay_engine import ReplayEngine
from router.types import Verdict


class ReplayLeg(NamedTuple):
    """The engine that reads a prompt: promised KV tokens, expected prefix hits, transfer time."""

    seat: ReplayEngine
    row: int
    promised: int
    hit_tokens: int
    transfer_s: float


def leg_of(verdict: Verdict, target: Target, seats: Mapping[str, ReplayEngine]) -> ReplayLeg | None:
    """Return the leg that a decision chose; `None` if the answering engine reads the prompt."""
    forecast = verdict.prefill
    if forecast is None:
        return None
    row = next(partner.row for partner in target.partners if partner.name == forecast.name)
    options = verdict.candidate.prefillers
    state = next(option.engine for option in options if option.name == forecast.name)
    return ReplayLeg(
        seats[forecast.name],
        row,
        forecast.kv_promise_tokens,
        state.prefix_hit_tokens,
        forecast.transfer_s,
    )
