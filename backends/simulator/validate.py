"""Errors of a fitted model on measurements held out from the fit, as a table.

Every other run is held out. The saturation rate is the highest served throughput, in requests of
the mean output. The rate at which the SLO breaks is where the share of requests inside it falls
below the promised attainment, interpolated linearly between two measured rates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backends.simulator.fit import Runs, simulate
from backends.simulator.measurements import MeasuredRequest, MeasurementSummary, summarise
from backends.simulator.shape import EngineShape

UNSATURATED = 0.8  # of the saturation rate: up to there TTFT is promised
BARS = {"TTFT p50": 0.15, "TPOT p50": 0.10, "output tokens/s": 0.05, "rate": 0.05}
WORST = 5


@dataclass(frozen=True, slots=True)
class ValidationSlo:
    ttft_s: float = 0.5
    tpot_s: float = 0.05
    attainment: float = 0.99


@dataclass(frozen=True, slots=True)
class ValidationFigure:
    """One figure; `bar` is the largest error that passes (`None`: shown, not judged)."""

    run: str
    name: str
    unit: str
    observed: float
    simulated: float
    held_out: bool
    bar: float | None

    @property
    def error(self) -> float:
        return self.simulated / self.observed - 1.0

    @property
    def good(self) -> bool:
        return self.bar is None or abs(self.error) <= self.bar


def halves(runs: Runs) -> tuple[dict[str, Sequence[MeasuredRequest]], list[str]]:
    """Return every other run, from the first on, for the fit, and the names of the rest."""
    names = list(runs)
    return {name: runs[name] for name in names[::2]}, names[1::2]


def figures(
    shape: EngineShape,
    runs: Runs,
    held_out: Sequence[str],
    promise: ValidationSlo = ValidationSlo(),
) -> list[ValidationFigure]:
    """Return the figures of every run, then both rates if runs are named by their rates."""
    simulated = {name: simulate(shape, requests) for name, requests in runs.items()}
    pairs = {name: (summarise(runs[name]), summarise(simulated[name])) for name in runs}
    saturation = _saturation(runs, {name: summary for name, (summary, _) in pairs.items()})
    found = [
        figure
        for name, (observed, ours) in pairs.items()
        for figure in _of_run(name, observed, ours, held_out=name in held_out, most=saturation)
    ]
    rates = _rates(runs)
    if len(rates) > 1:
        ours = _saturation(runs, {name: summary for name, (_, summary) in pairs.items()})
        rate = ("requests/s", saturation, ours, True, BARS["rate"])
        found.append(ValidationFigure("all", "saturation", *rate))
        crossed = crossing(runs, rates, promise), crossing(simulated, rates, promise)
        if crossed[0] is not None and crossed[1] is not None:
            rate = ("requests/s", crossed[0], crossed[1], True, BARS["rate"])
            found.append(ValidationFigure("all", "SLO broken from", *rate))
    return found


def saturated(runs: Runs) -> bool:
    """Return whether a run was overloaded; true if no run states its rate.

    Without an overloaded run, a fit cannot tell how long full steps are: with only 30 requests/s it
    put an H200's saturation at 53 instead of 37, with only 110 at 36.5 (8B in bf16, 1,000 in 64
    out, 2026-11-23).
    """
    rated = [runs[name] for name in _rates(runs)]
    return not rated or any(_is_crowded(values) for values in rated)


def _is_crowded(run: Sequence[MeasuredRequest]) -> bool:
    starts = [request.start_s for request in run]
    ended_s = max(request.start_s + request.e2e_s for request in run)
    return max(starts) - min(starts) < UNSATURATED * (ended_s - min(starts))


def worst(found: Sequence[ValidationFigure]) -> list[ValidationFigure]:
    """Return the judged figures, largest errors first."""
    judged = [finding for finding in found if finding.bar is not None]
    return sorted(judged, key=lambda figure: -abs(figure.error))[:WORST]


def crossing(runs: Runs, rates: Mapping[str, float], promise: ValidationSlo) -> float | None:
    """Return the rate in requests/s at which the SLO breaks, `None` without such a rate.

    There is none if the SLO holds, or fails, at every rate.
    """
    before: tuple[float, float] | None = None
    for name, rate in rates.items():
        kept = [
            request.ttft_s <= promise.ttft_s and request.tpot_s <= promise.tpot_s
            for request in runs[name]
        ]
        share = sum(kept) / len(kept)
        if share < promise.attainment:
            if before is None:
                return None
            at, had = before
            return at + (rate - at) * (had - promise.attainment) / (had - share)
        before = rate, share
    return None


def _of_run(
    name: str,
    observed: MeasurementSummary,
    simulated: MeasurementSummary,
    *,
    held_out: bool,
    most: float,
) -> list[ValidationFigure]:
    rate = _rate(name)
    calm = rate is None or rate <= UNSATURATED * most
    rows = [
        ("TTFT p50", "ms", 1e3 * observed.ttft_s, 1e3 * simulated.ttft_s, calm),
        ("TPOT p50", "ms", 1e3 * observed.tpot_s, 1e3 * simulated.tpot_s, True),
        ("output tokens/s", "", observed.tokens_per_s, simulated.tokens_per_s, True),
    ]
    return [
        ValidationFigure(name, what, unit, there, here, held_out, BARS[what] if judged else None)
        for what, unit, there, here, judged in rows
    ]


def _saturation(runs: Runs, summaries: Mapping[str, MeasurementSummary]) -> float:
    """Return the requests/s at the highest throughput of all runs."""
    outputs = [request.output_tokens for requests in runs.values() for request in requests]
    most = max(summary.tokens_per_s for summary in summaries.values())
    return most * len(outputs) / sum(outputs)


def _rates(runs: Runs) -> dict[str, float]:
    named = {name: rate for name in runs if (rate := _rate(name)) is not None}
    return dict(sorted(named.items(), key=lambda item: item[1]))


def _rate(name: str) -> float | None:
    try:
        return float(name)
    except ValueError:
        return None
