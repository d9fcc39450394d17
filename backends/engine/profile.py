"""Fit of the step-time model of a live engine, from a few seconds of measured streams.

Single streams with prompts of several lengths give the time to first token. Concurrent streams give
the time of a step by number of sequences and context. On a fast engine a few streams change a step
by less than its noise, so fuller batches follow, as full as time and KV cache allow. The series is
short. Parameters that it cannot separate are taken pessimistically: one standard error up, or all
of the observed time. An optimistic model would admit more than the engine can serve in time, and
feedback at run time corrects that only afterwards.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import httpx

from backends.engine.leastsquares import solve
from backends.engine.probes import (
    ProbeCost,
    ProbeError,
    ProbeStream,
    Workload,
    context_limit,
    free_kv_tokens,
    measure,
)
from backends.stepmodel import FittedStepModel

_NAMES = ("a_s", "b_s", "c_s", "d_s", "t0_s")
_LEAST_MARKS = 5  # with fewer reads a step time is mostly this client's delay
# Of the time to the first token. Tokens that arrive within less were delayed on the way and come in
# one burst, which does not show how fast they were generated.
_LEAST_SHARE = 0.1
_MOST_IN_FIRST = 2  # in the first read; with more, the first token came before the read
_FIRST_WORDS = 256  # of the tokens-per-word count: a small vocabulary takes 4 or 5 for a word
_MOST_TOKENS_A_WORD = 8  # assumed for a short context
_LONGER = 1.2  # factor by which other words may be longer
_NOISE = 0.05  # of the longest prompt's time, by which a forecast may be too early


@dataclass(frozen=True, slots=True)
class FitLimits:
    """Limits of a measurement. Rounds over all points stop at `budget_s`, after at least one.

    Fuller batches have many short prompts, then long ones: the most streams expected to take half
    of `fuller_s`. Without them an H200 with an 8B model was estimated 40 % too slow (2026-11-21).
    `lone` are the words of prompts that run alone. An engine that launches kernels one by one reads
    the first thousands of tokens in the launch time: without long prompts an H200 was estimated to
    read three times faster than it can (2026-11-29).
    """

    budget_s: float = 8.0
    fuller_s: float = 5.0
    many: tuple[int, ...] = (48, 32, 24)
    long: tuple[int, ...] = (16, 12, 8, 6)
    long_prompt: int = 4096
    lone: tuple[int, ...] = (4096, 7168)
    rounds: int = 3
    concurrencies: tuple[int, ...] = (2, 4, 8, 16)
    prompts: tuple[int, ...] = (16, 128, 512, 1536)
    output_tokens: int = 32


# For an engine of another owner: about a tenth of the tokens, and short prompts.
SMALL = FitLimits(
    budget_s=4.0, many=(), long=(), lone=(), rounds=1, concurrencies=(2, 6), prompts=(16, 256)
)


@dataclass(frozen=True, slots=True)
class PromptCapacity:
    """Limits of prompts at an engine: context length, free KV cache, most tokens per word."""

    context_tokens: int
    kv_tokens: int
    tokens_a_word: float  # at most


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """One measured time, and the engine's work in it: a step or a first token."""

    seconds: float
    sequences: int
    context_tokens: float
    prefill_tokens: int
    first_token: bool

    def row(self) -> tuple[float, ...]:
        ttft = 1.0 if self.first_token else 0.0
        return (1.0, self.sequences, self.context_tokens, self.prefill_tokens, ttft)

    def predicted_s(self, step: FittedStepModel) -> float:
        return (step.t0_s if self.first_token else 0.0) + step.step_s(
            sequences=self.sequences,
            context_tokens=self.context_tokens,
            prefill_tokens=self.prefill_tokens,
        )


@dataclass(frozen=True, slots=True)
class StepFit:
    """Result of a fit: the pessimistic `step` to use, the plain `fitted`, and its errors.

    Errors are relative to the observations.
    """

    step: FittedStepModel
    fitted: FittedStepModel
    pessimistic: tuple[str, ...]
    error_median: float  # relative, of `fitted`
    error_worst: float
    observations: int
    seconds: float
    spent: ProbeCost = field(default_factory=ProbeCost)


async def profile(
    workload: Workload, *, limits: FitLimits | None = None, client: httpx.AsyncClient
) -> StepFit:
    """Measure an engine and fit its step-time model. Raises `ProbeError` when that fails."""
    limits = limits or FitLimits()
    began = time.monotonic()
    spent = ProbeCost()
    observations = await _series(client, workload, limits, began, spent)
    return replace(fit(observations, seconds=time.monotonic() - began), spent=spent)


def fit(observations: Sequence[ProfiledRun], *, seconds: float = 0.0) -> StepFit:
    """Fit the step-time model to observations.

    Relative errors are minimised, so that slow first tokens do not outweigh fast steps. Raises
    `ProbeError` when first tokens or steps are missing.
    """
    if not any(each.first_token for each in observations) or all(
        each.first_token for each in observations
    ):
        raise ProbeError("first tokens and steps are both needed for a fit; is this machine busy?")
    rows = [[value / each.seconds for value in each.row()] for each in observations]
    solution = solve(rows, [1.0] * len(rows))
    fitted = FittedStepModel(*solution.values)
    careful: dict[str, float] = {}
    raised: list[str] = []
    for index, name in enumerate(_NAMES):
        value, deviation = solution.values[index], solution.deviations[index]
        if value > 0.0 and deviation <= value / 2:
            careful[name] = value
            continue
        raised.append(name)
        most = _max_parameter(observations, index)
        bound = min(value + deviation, most) if math.isfinite(deviation) else most
        careful[name] = max(value, bound)
    longest = max(
        (each for each in observations if each.first_token), key=lambda each: each.prefill_tokens
    )
    late_s = longest.seconds - longest.predicted_s(FittedStepModel(**careful))
    if late_s > _NOISE * longest.seconds:
        careful["d_s"] += late_s / longest.prefill_tokens
        if "d_s" not in raised:
            raised.append("d_s")
    errors = [abs(each.predicted_s(fitted) / each.seconds - 1.0) for each in observations]
    return StepFit(
        FittedStepModel(**careful),
        fitted,
        tuple(raised),
        round(median(errors), 4),
        round(max(errors), 4),
        len(observations),
        round(seconds, 2),
    )


def _max_parameter(observations: Sequence[ProfiledRun], index: int) -> float:
    """Return the largest value of a parameter: it explains all of some observed time."""
    bounds = [each.seconds / each.row()[index] for each in observations if each.row()[index] > 0]
    return min(bounds, default=0.0)


async def _series(
    client: httpx.AsyncClient, workload: Workload, limits: FitLimits, began: float, spent: ProbeCost
) -> list[ProfiledRun]:
    longest = await context_limit(client, workload) or 2048
    kv_tokens = await free_kv_tokens(client, workload)  # before our own streams count as running
    words = max(1, min(_FIRST_WORDS, longest // _MOST_TOKENS_A_WORD))
    first = spent.add(await measure(client, workload, prompt_words=words, output_tokens=2))
    a_word = _LONGER * first.prompt_tokens / words
    room = longest - limits.output_tokens
    prompts = [length for length in limits.prompts if length * a_word < room] or [8]
    plan = [(1, length) for length in prompts]
    plan += [(count, prompts[0]) for count in limits.concurrencies]
    plan += [(4, length) for length in prompts[2:]]
    spent.add(await measure(client, workload, prompt_words=prompts[0], output_tokens=2))  # untimed
    rounds = Rounds(client, workload, limits, spent)
    found = await rounds.run(plan, began + limits.budget_s)
    more = fuller_points(
        found, limits, PromptCapacity(longest, kv_tokens, a_word), short=prompts[0]
    )
    until_s = time.monotonic() + limits.fuller_s
    return found + await rounds.run(more, until_s)


@dataclass(frozen=True, slots=True)
class Rounds:
    """Measurements of points at one engine. `spent` counts their requests and tokens."""

    client: httpx.AsyncClient
    workload: Workload
    limits: FitLimits
    spent: ProbeCost

    async def run(self, plan: Sequence[tuple[int, int]], until_s: float) -> list[ProfiledRun]:
        """Return the median times of each point (streams, words of a prompt) over the rounds."""
        rounds: list[list[ProfiledRun]] = [[] for _ in plan]
        for turn in range(self.limits.rounds):
            for place, (count, length) in enumerate(plan):
                if turn and time.monotonic() > until_s:
                    break
                rounds[place] += observe(await self._together(count, length))
        return [middle for round_ in rounds for middle in median_runs(round_)]

    async def _together(self, count: int, length: int) -> list[ProbeStream]:
        tokens = _tokens(count, self.limits)
        streams = await asyncio.gather(
            *(
                measure(self.client, self.workload, prompt_words=length, output_tokens=tokens)
                for _ in range(count)
            )
        )
        return [self.spent.add(stream) for stream in streams]


def _tokens(streams: int, limits: FitLimits) -> int:
    """Return the output tokens of each stream.

    More streams need longer ones, so that all run at the same time.
    """
    return limits.output_tokens + 4 * streams


def fuller_points(
    found: Sequence[ProfiledRun], limits: FitLimits, room: PromptCapacity, *, short: int
) -> list[tuple[int, int]]:
    """Return points (streams, words of a prompt) that load the engine more than `found`.

    They take at most half of the free KV cache. `short` is the number of words of a short prompt.
    The list is empty if `found` lacks first tokens or steps: the engine is too slow or too busy.
    """
    if len({each.first_token for each in found}) < 2:
        return []
    step = fit(found).fitted
    points: list[tuple[int, int]] = []
    batches = [(limits.many, short), (limits.long, limits.long_prompt)]
    for counts, length in (*batches, *(((1,), length) for length in limits.lone)):
        for count in counts:
            tokens = _tokens(count, limits)
            words = min(length, int((room.context_tokens - tokens) / room.tokens_a_word))
            if count == 1 and words < length:
                break  # shorter prompts were measured before
            prompts = math.ceil(count * words * room.tokens_a_word)
            held = prompts + count * tokens
            seconds = step.step_s(sequences=0, context_tokens=0, prefill_tokens=prompts)
            seconds += tokens * step.step_s(sequences=count, context_tokens=held, prefill_tokens=0)
            if words > 0 and held <= room.kv_tokens / 2 and seconds <= limits.fuller_s / 2:
                points.append((count, words))
                break
    return points


def median_runs(found: Sequence[ProfiledRun]) -> list[ProfiledRun]:
    """Return the median first token and the median step of one point.

    With a median, a stall of this client spoils only one round.
    """
    chosen = []
    for first_token in (True, False):
        alike = sorted(
            (each for each in found if each.first_token is first_token),
            key=lambda each: each.seconds,
        )
        chosen += alike[len(alike) // 2 : len(alike) // 2 + 1]
    return chosen


def observe(streams: Sequence[ProbeStream]) -> list[ProfiledRun]:
    """Return the first token of a single stream, and the mean step while all streams decode."""
    found: list[ProfiledRun] = []
    if len(streams) == 1 and streams[0].marks[0].tokens <= _MOST_IN_FIRST:
        only = streams[0]
        found.append(ProfiledRun(only.ttft_s, 1, 0.0, only.prompt_tokens, first_token=True))
    start = max(stream.marks[0].at_s for stream in streams)
    end = min(stream.marks[-1].at_s for stream in streams)
    reads = min(sum(start <= mark.at_s <= end for mark in stream.marks) for stream in streams)
    waited_s = start - min(stream.sent_at_s for stream in streams)
    if reads < _LEAST_MARKS or end - start <= _LEAST_SHARE * waited_s:
        return found
    tokens = [stream.tokens_at(end) - stream.tokens_at(start) for stream in streams]
    mean = sum(tokens) / len(tokens)
    context = sum(
        stream.prompt_tokens + (stream.tokens_at(start) + stream.tokens_at(end)) / 2
        for stream in streams
    )
    found.append(ProfiledRun((end - start) / mean, len(streams), context, 0, first_token=False))
    return found
