"""The options of a simulated engine, its events and its counters."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from backends.stepmodel import FittedStepModel


class SequenceEventKind(Enum):
    ADMITTED = "admitted"
    FIRST = "first token"
    TOKEN = "token"  # noqa: S105 - a token of text, not a secret
    FINISHED = "finished"
    PREEMPTED = "preempted"


class SequenceEvent(NamedTuple):
    """An event of a sequence. `generated` counts output tokens including this one.

    `cached` is set on admission: prompt tokens from the prefix cache.
    """

    at_s: float
    id: str
    what: SequenceEventKind
    generated: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class StepTiming:
    """The actual duration of an iteration, where a linear step model is not sufficient.

    An iteration with prefill has a minimum duration, which the host needs to launch it:
    `captured_s` while a CUDA graph of up to `captured_tokens` covers it, `eager_s` beyond. A server
    that streams to many clients in rounds reads a new request only in its turn: after `t0`, plus
    between 0 and twice `stream_s * running ** stream_power`.
    """

    step: FittedStepModel
    captured_tokens: int = 512
    captured_s: float = 0.0
    eager_s: float = 0.0
    stream_s: float = 0.0
    stream_power: float = 1.0

    def step_s(
        self,
        *,
        sequences: int,
        context_tokens: float,
        prefill_tokens: float,
        attended_tokens: float = 0.0,
    ) -> float:
        """Return the duration of one iteration in seconds."""
        linear_s = self.step.step_s(
            sequences=sequences,
            context_tokens=context_tokens,
            prefill_tokens=prefill_tokens,
            attended_tokens=attended_tokens,
        )
        if not prefill_tokens:
            return linear_s
        captured = sequences + prefill_tokens <= self.captured_tokens
        return max(linear_s, self.captured_s if captured else self.eager_s)

    def intake_s(self, running: int, phase: float) -> float:
        """Return the time until the scheduler sees a request; `phase` of the round is 0 to 1."""
        round_s: float = 2.0 * self.stream_s * running**self.stream_power
        return self.step.t0_s + phase * round_s


@dataclass(frozen=True, slots=True)
class EngineShape:
    """The options of an engine; `blocks` includes the reserved one.

    `step` is the linear model that a gateway measures and uses. `pace`, if known, is the actual
    timing of the simulated engine.
    """

    step: FittedStepModel
    blocks: int
    block_tokens: int = 16
    max_num_seqs: int = 256
    prefill_budget_tokens: int = 2048
    context_tokens: int = 8192
    prefix_caching: bool = True
    pace: StepTiming | None = None

    @property
    def step_timing(self) -> StepTiming:
        return self.pace or StepTiming(self.step)

    @property
    def kv_capacity_tokens(self) -> int:
        return (self.blocks - 1) * self.block_tokens


class KvHandover(NamedTuple):
    """The transfer of a prompt's KV: kept for another engine, or fetched from one.

    The scheduler sees a request with fetched KV after `moving_s`.
    """

    is_kept: bool = False
    is_moved: bool = False
    moving_s: float = 0.0


@dataclass(slots=True)
class SequenceTotals:
    """Counters since the start, as in the metrics."""

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
    """A request that can never be held: longer than the context or than the whole cache."""
