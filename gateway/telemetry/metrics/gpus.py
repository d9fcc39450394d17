"""Metrics of this host's GPUs, read at each scrape from the driver's last answer."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from backends.engine.gpu_status import SLOWDOWNS
from gateway.clock import Clock
from gateway.fleet.gpu_notes import read_gpu_note


class GpuMetrics(Collector):
    def __init__(self, run_dir: Path, clock: Clock) -> None:
        self._run_dir = run_dir
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of the last answer, and its age; missing figures are omitted."""
        age = GaugeMetricFamily(
            "breakeven_gpu_silent_seconds", "Since when the driver has told nothing about the GPUs"
        )
        used = GaugeMetricFamily(
            "breakeven_gpu_memory_used_bytes", "Memory in use, by whomever", labels=["gpu"]
        )
        total = GaugeMetricFamily("breakeven_gpu_memory_bytes", "Its memory", labels=["gpu"])
        heat = GaugeMetricFamily("breakeven_gpu_celsius", "Its temperature", labels=["gpu"])
        slowed = GaugeMetricFamily(
            "breakeven_gpu_slowed",
            "1 while its clocks are held down for this reason",
            labels=["gpu", "reason"],
        )
        note = read_gpu_note(self._run_dir)
        if note is not None:
            age.add_metric([], max(0.0, (self._clock.wall_us() - note.at_us) / 1e6))
            for gpu in note.gpus:
                for family, figure in (
                    (used, gpu.memory_used_bytes),
                    (total, gpu.memory_total_bytes),
                    (heat, gpu.temperature_c),
                ):
                    if figure is not None:
                        family.add_metric([gpu.index], figure)
                for reason in SLOWDOWNS if gpu.slowed_by is not None else ():
                    slowed.add_metric([gpu.index, reason], float(reason in (gpu.slowed_by or ())))
        yield from (age, used, total, heat, slowed)
