"""GPUs on `/metrics`: what the driver told, how long ago, and nothing that it did not tell."""

from pathlib import Path

from prometheus_client import CollectorRegistry

from backends.engine.gpu_status import GpuStatus
from gateway.clock import Clock
from gateway.fleet.gpu_notes import GpuNote, write_gpus
from gateway.telemetry.metrics.gpus import GpuMetrics

NOW_US = 1_780_000_000_000_000


def test_what_the_driver_told_is_shown_with_its_age(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    registry.register(GpuMetrics(tmp_path, Clock(now_s=lambda: 0.0, wall_us=lambda: NOW_US)))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"breakeven_gpu_{name}", labels)

    assert value("silent_seconds") is None  # no engine here has a GPU
    told = [GpuStatus("0", 5, 9, 71, ("thermal",)), GpuStatus("1", None, 9, None, None)]
    write_gpus(tmp_path, GpuNote(NOW_US - 2_500_000, told))
    assert value("silent_seconds") == 2.5
    assert [value(name, gpu="0") for name in ("memory_used_bytes", "memory_bytes", "celsius")] == [
        5.0, 9.0, 71.0,
    ]  # fmt: skip
    assert [value(name, gpu="1") for name in ("memory_used_bytes", "memory_bytes", "celsius")] == [
        None, 9.0, None,
    ]  # fmt: skip
    reasons = ("power_cap", "hardware", "thermal", "power_brake")
    assert [value("slowed", gpu="0", reason=reason) for reason in reasons] == [0.0, 0.0, 1.0, 0.0]
    assert [value("slowed", gpu="1", reason=reason) for reason in reasons] == [None] * 4
