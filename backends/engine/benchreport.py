"""Document of a benchmark: its settings, the figures of every run, and its requests.

`engine fit` reads this document back. Runs have the names that measurement files use: the rate of
an open loop, the concurrency of a closed loop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from backends.engine.benchfigures import (
    METHOD,
    BenchSlo,
    Percentile,
    RequestSample,
    RunSummary,
    cost_pusd_per_million,
    point,
    saturation,
)
from backends.engine.benchload import LoadProfile

FORMAT = 1


@dataclass(frozen=True, slots=True)
class BenchRun:
    loop: LoadProfile
    samples: tuple[RequestSample, ...]
    point: RunSummary | None


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All runs of one target. `about` is free metadata that is shown and stored unchanged."""

    about: Mapping[str, Any]
    promise: BenchSlo
    runs: tuple[BenchRun, ...]
    usd_per_hour: Decimal | None = None

    @property
    def is_open_loop(self) -> bool:
        return all(run.loop.rate is not None for run in self.runs)

    @property
    def saturation(self) -> float | None:
        """Return the load at saturation.

        The unit is requests/s for an open loop and concurrent requests for a closed one.
        """
        loads = [
            (float(run.loop.rate or run.loop.at_once or 0), run.point)
            for run in self.runs
            if run.point is not None
        ]
        if any(load == 0 for load, _ in loads):
            return None
        return saturation(loads, offered=self.is_open_loop)

    @property
    def best(self) -> BenchRun | None:
        """Return the run with the highest goodput (good requests per second)."""
        made = [run for run in self.runs if run.point is not None]
        return max(made, key=_good, default=None)

    def costs(self, run: BenchRun) -> tuple[int, int] | None:
        """Return pico-USD per million tokens, counting input + output, and output only."""
        if self.usd_per_hour is None or run.point is None:
            return None
        rates = run.point.rates
        both = cost_pusd_per_million(self.usd_per_hour, rates.input_tokens + rates.output_tokens)
        output = cost_pusd_per_million(self.usd_per_hour, rates.output_tokens)
        return None if both is None or output is None else (both, output)


def run_of(loop: LoadProfile, samples: Sequence[RequestSample], promise: BenchSlo) -> BenchRun:
    return BenchRun(loop, tuple(samples), point(samples, promise))


def document(bench: BenchReport) -> dict[str, Any]:
    """Return the report as a JSON object: times in seconds, costs in pico-USD."""
    return {
        "breakeven_bench": FORMAT,
        "about": dict(bench.about),
        "slo": asdict(bench.promise),
        "intervals": METHOD,
        "usd_per_hour": None if bench.usd_per_hour is None else str(bench.usd_per_hour),
        "saturation": {
            "at": bench.saturation,
            "unit": "requests/s" if bench.is_open_loop else "at once",
        },
        "runs": [_run(bench, run) for run in bench.runs],
    }


def _run(bench: BenchReport, run: BenchRun) -> dict[str, Any]:
    made: dict[str, Any] = {"name": run.loop.name, "rate": run.loop.rate,
                            "at_once": run.loop.at_once}  # fmt: skip
    if run.point is not None:
        made["figures"] = _figures(run.point)
    costs = bench.costs(run)
    if costs is not None:
        made["pusd_per_million"] = {"input+output": costs[0], "output": costs[1]}
    made["errors"] = sorted({sample.error for sample in run.samples if sample.error is not None})
    made["requests"] = [
        {
            "start_s": round(sample.start_s, 6), "input_tokens": sample.input_tokens,
            "output_tokens": sample.output_tokens, "cached_tokens": sample.cached_tokens,
            "ttft_s": round(sample.ttft_s, 6), "e2e_s": round(sample.e2e_s, 6),
        }
        for sample in run.samples
        if sample.error is None
    ]  # fmt: skip
    return made


def _figures(made: RunSummary) -> dict[str, Any]:
    found: dict[str, Any] = {
        "requests": made.requests,
        "failed": made.failed,
        "in_flight": made.in_flight,
        "whole": asdict(made.whole),
        "steady": None if made.steady is None else asdict(made.steady),
        "attainment": made.attainment,
        "good_requests_per_s": made.good_requests_per_s,
    }
    for name in ("ttft", "itl", "tpot", "e2e"):
        values: tuple[Percentile, ...] = getattr(made, name)
        found[f"{name}_s"] = {
            f"p{value.percent}": {"value": value.value_s, "low": value.low_s, "high": value.high_s}
            for value in values
        }
    return found


def _good(run: BenchRun) -> float:
    return 0.0 if run.point is None else run.point.good_requests_per_s
