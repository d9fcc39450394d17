"""Fit the step-time model to measured requests, and say how well it reproduces them.

A measurement is a list of requests of one run: when each was sent, its lengths, its time to first
token and to the end. The same requests go through the simulated engine; compared are the medians
of TTFT and TPOT, the output tokens per second of each run and, where the engine's own queueing time
is known, the median of TTFT without it (in a saturated run queueing hides what prefill takes).
The fit minimises the mean absolute log ratio, which one odd run near the knee cannot dominate,
with Nelder-Mead over the logarithms of the five parameters: standard library only.

    python -m backends.simulator.fit FILE.csv.gz --blocks 60255 --budget 8192
"""

import argparse
import csv
import gzip
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from backends.simulator.model import Engine
from backends.simulator.shape import Shape, What
from backends.stepmodel import StepModel

Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    start_s: float
    prompt_tokens: int
    output_tokens: int
    ttft_s: float
    e2e_s: float
    queue_s: float | None = None  # sent until first scheduled

    @property
    def tpot_s(self) -> float:
        return (self.e2e_s - self.ttft_s) / max(1, self.output_tokens - 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """What is compared: medians over requests, output tokens per second over the run."""

    ttft_s: float
    tpot_s: float
    tokens_per_s: float
    prefill_s: float | None  # TTFT without the queue

    def ratios(self, observed: "Summary") -> list[float]:
        """Simulated over observed, in the order of the fields."""
        ratios = [
            self.ttft_s / observed.ttft_s,
            self.tpot_s / observed.tpot_s,
            self.tokens_per_s / observed.tokens_per_s,
        ]
        if self.prefill_s is not None and observed.prefill_s is not None:
            ratios.append(self.prefill_s / observed.prefill_s)
        return ratios


def read(path: Path) -> dict[str, list[Measured]]:
    """Runs by offered rate (one run where the file has no such column), from `.csv.gz`."""
    runs: dict[str, list[Measured]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            start = row["start_s"] if "start_s" in row else row["timestamp_s"]
            runs.setdefault(row.get("offered_rate") or "run", []).append(
                Measured(
                    float(start),
                    int(row["input_tokens"]),
                    int(row["output_tokens"]),
                    float(row["ttft_s"]),
                    float(row["e2e_s"]),
                    float(row["queue_s"]) if "queue_s" in row else None,
                )
            )
    return runs


def summarise(requests: Sequence[Measured]) -> Summary:
    end_s = max(r.start_s + r.e2e_s for r in requests)
    prefills = [r.ttft_s - r.queue_s for r in requests if r.queue_s is not None]
    return Summary(
        median(r.ttft_s for r in requests),
        median(r.tpot_s for r in requests),
        sum(r.output_tokens for r in requests) / (end_s - min(r.start_s for r in requests)),
        median(prefills) if prefills else None,
    )


def simulate(shape: Shape, requests: Sequence[Measured]) -> list[Measured]:
    """The same requests through the simulated engine; prompts share no prefix."""
    engine = Engine(shape)
    admitted: dict[str, float] = {}
    first: dict[str, float] = {}
    end: dict[str, float] = {}
    ordered = sorted(requests, key=lambda r: r.start_s)

    def pass_time(until_s: float) -> None:
        for event in engine.advance(until_s):
            if event.what is What.ADMITTED:
                admitted.setdefault(event.id, event.at_s)
            elif event.what is What.FIRST:
                first[event.id] = event.at_s
            elif event.what is What.FINISHED:
                end[event.id] = event.at_s

    for index, request in enumerate(ordered):
        pass_time(request.start_s)
        engine.submit(
            str(index),
            request.start_s,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
        )
    pass_time(math.inf)
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
    shape: Shape, runs: Mapping[str, Sequence[Measured]]
) -> dict[str, tuple[Summary, Summary]]:
    """Observed and simulated summary of each run."""
    return {
        name: (summarise(requests), summarise(simulate(shape, requests)))
        for name, requests in runs.items()
    }


def loss(shape: Shape, runs: Mapping[str, Sequence[Measured]]) -> float:
    """Mean absolute log ratio over all runs and all figures."""
    ratios = [
        ratio
        for observed, simulated in compare(shape, runs).values()
        for ratio in simulated.ratios(observed)
    ]
    return sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios)


def fit(
    shape: Shape, runs: Mapping[str, Sequence[Measured]], *, evaluations: int = 400
) -> StepModel:
    """The step model that reproduces the runs best, starting from the shape's own."""
    step = shape.step
    start = tuple(map(math.log, (step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s)))

    def cost(point: Vector) -> float:
        return loss(replace(shape, step=_model(point)), runs)

    return _model(nelder_mead(cost, start, evaluations=evaluations))


def _model(point: Vector) -> StepModel:
    return StepModel(*(math.exp(value) for value in point))


def nelder_mead(
    cost: Callable[[Vector], float], start: Vector, *, evaluations: int, spread: float = 0.4
) -> Vector:
    """Minimise by reflecting, stretching and shrinking a simplex (Nelder and Mead, 1965)."""
    corners = [start] + [
        tuple(value + spread * (i == axis) for i, value in enumerate(start))
        for axis in range(len(start))
    ]
    simplex = sorted((cost(corner), corner) for corner in corners)
    spent = len(simplex)
    while spent < evaluations and simplex[-1][0] - simplex[0][0] > 1e-9:
        worst_cost, worst = simplex[-1]
        centre = _mean([corner for _, corner in simplex[:-1]])
        reflected = _along(centre, worst, -1.0)
        best = (cost(reflected), reflected)
        spent += 1
        if best[0] < simplex[0][0]:
            further = _along(centre, worst, -2.0)
            best = min(best, (cost(further), further))
            spent += 1
        elif best[0] >= simplex[-2][0]:
            nearer = _along(centre, worst, 0.5 if best[0] >= worst_cost else -0.5)
            best = min(best, (cost(nearer), nearer))
            spent += 1
        if best[0] < worst_cost:
            simplex[-1] = best
        else:
            anchor = simplex[0][1]
            shrunk = [_along(anchor, corner, 0.5) for _, corner in simplex[1:]]
            simplex[1:] = [(cost(corner), corner) for corner in shrunk]
            spent += len(shrunk)
        simplex.sort()
    return simplex[0][1]


def _mean(points: Sequence[Vector]) -> Vector:
    return tuple(sum(values) / len(points) for values in zip(*points, strict=True))


def _along(origin: Vector, point: Vector, factor: float) -> Vector:
    """The point at `factor` times the way from `origin` to `point`."""
    return tuple(o + factor * (p - o) for o, p in zip(origin, point, strict=True))


def table(compared: Mapping[str, tuple[Summary, Summary]]) -> Iterable[str]:
    yield f"{'run':>6}  {'TTFT p50 ms':>24}  {'TPOT p50 ms':>24}  {'output tokens/s':>24}"
    for name, (observed, simulated) in compared.items():
        pairs = [
            (observed.ttft_s * 1e3, simulated.ttft_s * 1e3),
            (observed.tpot_s * 1e3, simulated.tpot_s * 1e3),
            (observed.tokens_per_s, simulated.tokens_per_s),
        ]
        if observed.prefill_s is not None and simulated.prefill_s is not None:
            pairs.append((observed.prefill_s * 1e3, simulated.prefill_s * 1e3))
        columns = [f"{o:8.1f} {s:8.1f} {s / o - 1:+6.1%}" for o, s in pairs]
        yield f"{name:>6}  " + "  ".join(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description="fit the step-time model to measured requests")
    parser.add_argument("file", type=Path)
    parser.add_argument("--blocks", type=int, required=True, help="num_gpu_blocks of the run")
    parser.add_argument("--block-tokens", type=int, default=16)
    parser.add_argument("--seqs", type=int, default=256, help="max_num_seqs")
    parser.add_argument("--budget", type=int, default=2048, help="max_num_batched_tokens")
    parser.add_argument("--evaluations", type=int, default=250)
    arguments = parser.parse_args()
    runs = read(arguments.file)
    shape = Shape(
        step=StepModel(a_s=3e-3, b_s=5e-5, c_s=2e-8, d_s=1.5e-5, t0_s=2.5e-2),
        blocks=arguments.blocks,
        block_tokens=arguments.block_tokens,
        max_num_seqs=arguments.seqs,
        prefill_budget_tokens=arguments.budget,
        context_tokens=131072,
    )
    step = fit(shape, runs, evaluations=arguments.evaluations)
    lines = [str(step), *table(compare(replace(shape, step=step), runs))]
    print("\n".join(lines))  # noqa: T201 - the answer of a command


if __name__ == "__main__":
    main()
