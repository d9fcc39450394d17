"""Fitting of an engine's pace to measured requests, and its errors.

The measured requests run through the simulated engine at their times. Compared are the medians of
TTFT and TPOT, the output tokens per second of each run and, if the engine's queueing time is known,
the median of TTFT without it. The fit minimises the mean absolute log ratio, which one odd run
cannot dominate, over the logarithms of the parameters. TTFT of an overloaded run only shows how
long the run lasted, so it does not count.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from backends.simulator.measurements import MeasuredRequest, MeasurementSummary, summarise
from backends.simulator.model import SimulatedEngine
from backends.simulator.shape import EngineShape, SequenceEventKind, StepTiming
from backends.simulator.simplex import Cost, Vector, nelder_mead
from backends.stepmodel import FittedStepModel

Runs = Mapping[str, Sequence[MeasuredRequest]]
LONG_PROMPT = 8_000  # tokens, from which a run tells what attention adds: a quarter of a step
ATTENDED_START = 1 / 25_000  # of the time per prompt token, for each that it attends to (H200)
QUEUED = 0.25  # of a request's time before its first token: the engine does not keep up
PACE_START = StepTiming(
    FittedStepModel(a_s=3e-3, b_s=4e-5, c_s=3e-8, d_s=1e-5, t0_s=1.5e-2),
    captured_s=6e-3,
    eager_s=1.8e-2,
    stream_s=1e-4,
    stream_power=1.5,
)
# (how far the simplex reaches at first, its share of the evaluations)
ROUNDS = ((0.2, 0.4), (0.12, 0.35), (0.06, 0.25))


def simulate(shape: EngineShape, requests: Sequence[MeasuredRequest]) -> list[MeasuredRequest]:
    """Run the requests through the simulated engine; prompts share no prefix."""
    engine = SimulatedEngine(shape)
    admitted: dict[str, float] = {}
    first: dict[str, float] = {}
    end: dict[str, float] = {}
    ordered = sorted(requests, key=lambda r: r.start_s)

    def advance_until(until_s: float) -> None:
        for event in engine.advance(until_s):
            if event.what is SequenceEventKind.ADMITTED:
                admitted.setdefault(event.id, event.at_s)
            elif event.what is SequenceEventKind.FIRST:
                first[event.id] = event.at_s
            elif event.what is SequenceEventKind.FINISHED:
                end[event.id] = event.at_s

    for index, request in enumerate(ordered):
        advance_until(request.start_s)
        engine.submit(
            str(index),
            request.start_s,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
        )
    advance_until(math.inf)
    return [
        replace(
            r,
            ttft_s=first[str(i)] - r.start_s,
            e2e_s=end[str(i)] - r.start_s,
            queue_s=admitted[str(i)] - r.start_s,
        )
        for i, r in enumerate(ordered)
    ]


def compare(
    shape: EngineShape, runs: Runs
) -> dict[str, tuple[MeasurementSummary, MeasurementSummary]]:
    """Return the observed and the simulated summary of each run."""
    return {
        name: (summarise(requests), summarise(simulate(shape, requests)))
        for name, requests in runs.items()
    }


def loss(shape: EngineShape, runs: Runs) -> float:
    """Return the mean absolute log ratio over all figures that count, throughput twice."""
    total = weights = 0.0
    for name, (observed, simulated) in compare(shape, runs).items():
        ttft, tpot, rate, *prefill = simulated.ratios(observed)
        keeps_up = len(runs) == 1 or is_keeping_up(observed, runs[name])
        weighed = [(1.0 if keeps_up else 0.0, ttft), (1.0, tpot), (2.0, rate)]
        weighed += [(1.0, value) for value in prefill]
        total += sum(weight * abs(math.log(ratio)) for weight, ratio in weighed)
        weights += sum(weight for weight, _ in weighed)
    return total / weights


def is_keeping_up(observed: MeasurementSummary, requests: Sequence[MeasuredRequest]) -> bool:
    """Return whether requests of the run spent their time being served instead of waiting."""
    longest = sum(request.e2e_s for request in requests) / len(requests)
    return observed.ttft_s <= QUEUED * longest


def fit_pace(shape: EngineShape, runs: Runs, *, evaluations: int = 400) -> StepTiming:
    """Fit the duration of iterations, launches and streams, starting at the shape's pace."""
    start = shape.pace or PACE_START
    point: Vector = (
        *_linear(start.step), start.captured_s, start.eager_s, start.stream_s, start.stream_power,
    )  # fmt: skip
    if any(request.prompt_tokens >= LONG_PROMPT for run in runs.values() for request in run):
        point = *point, start.step.q_s or ATTENDED_START * start.step.d_s

    def cost(values: Vector) -> float:
        return loss(replace(shape, pace=_pace(start, values)), runs)

    return _pace(start, _minimise(cost, point, evaluations))


def believed_model(pace: StepTiming) -> FittedStepModel:
    """Return the closest linear model that is not faster: launches are spread over prefill."""
    step = pace.step
    spread_s = (pace.eager_s - step.a_s) / pace.captured_tokens
    return replace(step, d_s=max(step.d_s, spread_s))


def _minimise(cost: Cost, start: Vector, evaluations: int) -> Vector:
    best = tuple(map(math.log, start))
    for spread, share in ROUNDS:
        best = nelder_mead(
            cost, best, evaluations=max(len(start) + 2, int(share * evaluations)), spread=spread
        )
    return best


def _linear(step: FittedStepModel) -> Vector:
    return step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s


def _values(point: Vector) -> Vector:
    return tuple(map(math.exp, point))


def _pace(start: StepTiming, point: Vector) -> StepTiming:
    a, b, c, d, t0, captured, eager, stream, power, *attended = _values(point)
    return replace(
        start,
        step=FittedStepModel(a, b, c, d, t0, *(attended or (start.step.q_s,))),
        captured_s=captured,
        eager_s=eager,
        stream_s=stream,
        stream_power=power,
    )
