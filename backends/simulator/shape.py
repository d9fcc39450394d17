"""What a simulated engine is started with, what it reports and what it counts."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from backends.stepmodel import StepModel


class What(Enum):
    ADMITTED = "admitted"
    FIRST = "first token"
    TOKEN = "token"  # noqa: S105 - a token of text, not a secret
    FINISHED = "finished"
    PREEMPTED = "preempted"


class Event(NamedTuple):
    """`generated` counts the request's output tokens including this one.

    `cached` is set on admission: prompt tokens that came from the prefix cache.
    """

    at_s: float
    id: str
    what: What
    generated: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """What an engine was started with; `blocks` includes the reserved one."""

    step: StepModel
    blocks: int
    block_tokens: int = 16
    max_num_seqs: int = 256
    prefill_budget_tokens: int = 2048
    context_tokens: int = 8192
    prefix_caching: bool = True

    @property
    def kv_capacity_tokens(self) -> int:
        return (self.blocks - 1) * self.block_tokens


@dataclass(slots=True)
class Totals:
    """Counters since the start, as the metrics show them."""

    preemptions: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    finished: int = 0
    aborted: int = 0
    steps: int = 0
    busy_s: float = 0.0


class TooLargeError(ValueError):
    """The request could never be held: longer than the context or than the whole cache."""
