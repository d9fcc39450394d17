"""Metrics of pools that size themselves; the series exist before a pool's first plan.

They are read from notes of the host's scaling process, so that every worker answers the same. When
that process ends, the values stay and the plan's age grows.
"""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.clock import Clock
from ledger.fleet.scaling_notes import ScalingNote, read_scaling


class FleetMetrics(Collector):
    """Collector that reads the notes of a host's scaling process."""

    def __init__(self, run_dir: Path, clock: Clock) -> None:
        self._run_dir, self._clock = run_dir, clock

    def collect(self) -> Iterator[Metric]:
        notes = list(read_scaling(self._run_dir).values())
        yield from self._numbers(notes)
        yield from _dollars(notes)
        yield from _counts(notes)

    def _numbers(self, notes: list[ScalingNote]) -> Iterator[Metric]:
        wanted = GaugeMetricFamily(
            "breakeven_fleet_wanted_engines",
            "Engines that the last plan wants; before the first plan, those that run",
            labels=["pool"],
        )
        running = GaugeMetricFamily(
            "breakeven_fleet_running_engines", "Engines that run or start", labels=["pool"]
        )
        serving = GaugeMetricFamily(
            "breakeven_fleet_serving_engines", "Engines that serve", labels=["pool"]
        )
        age = GaugeMetricFamily(
            "breakeven_fleet_plan_age_seconds",
            "Since when the pool's state was last looked at",
            labels=["pool"],
        )
        acts = GaugeMetricFamily(
            "breakeven_fleet_acts", "1 where plans start and stop engines", labels=["pool"]
        )
        held = GaugeMetricFamily(
            "breakeven_fleet_held", "1 while nothing is started or stopped", labels=["pool"]
        )
        parked = GaugeMetricFamily(
            "breakeven_fleet_parked", "1 for an engine that no plan wants now", labels=["engine"]
        )
        for note in notes:
            wanted.add_metric([note.pool], note.wanted)
            running.add_metric([note.pool], note.running)
            serving.add_metric([note.pool], note.serving)
            age.add_metric([note.pool], max(0.0, self._clock.wall_us() - note.seen_us) / 1e6)
            acts.add_metric([note.pool], float(note.mode == "act"))
            held.add_metric([note.pool], float(note.held is not None))
            for engine in note.parked:
                parked.add_metric([engine], 1.0)
        yield from (wanted, running, serving, age, acts, held, parked)


def _dollars(notes: list[ScalingNote]) -> Iterator[Metric]:
    rent = GaugeMetricFamily(
        "breakeven_fleet_rent_usd_per_hour", "Rent of one engine", labels=["pool"]
    )
    worth = GaugeMetricFamily(
        "breakeven_fleet_engine_value_usd_per_hour",
        "API dollars that an engine avoids: the last one wanted, and one more",
        labels=["pool", "engine"],
    )
    for note in notes:
        if note.rent_usd is not None:
            rent.add_metric([note.pool], note.rent_usd)
        for word, value in (("last", note.last_usd), ("next", note.next_usd)):
            if value is not None:
                worth.add_metric([note.pool, word], value)
    yield from (rent, worth)


def _counts(notes: list[ScalingNote]) -> Iterator[Metric]:
    changes = CounterMetricFamily(
        "breakeven_fleet_changes",
        "Starts and stops that plans wanted, since the scaling process began",
        labels=["pool", "verb"],
    )
    checks = CounterMetricFamily(
        "breakeven_fleet_forecasts",
        "Forecasts whose time came, by whether the traffic was inside of their band",
        labels=["pool", "outcome"],
    )
    findings = GaugeMetricFamily(
        "breakeven_fleet_findings",
        "What is wrong with a pool's engines now, by kind",
        labels=["pool", "kind"],
    )
    for note in notes:
        changes.add_metric([note.pool, "start"], note.starts)
        changes.add_metric([note.pool, "stop"], note.stops)
        checks.add_metric([note.pool, "inside"], note.inside)
        checks.add_metric([note.pool, "outside"], note.outside)
        for kind, count in sorted(note.findings.items()):
            findings.add_metric([note.pool, kind], count)
    yield from (changes, checks, findings)
