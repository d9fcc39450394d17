"""Checks of own engines on this machine: environment, GPUs and driver, model."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from backends.engine.environment import Environment, flavour_here, vllm_version
from backends.engine.gpus import gpu_ids
from backends.engines import ENGINE_KINDS
from gateway.config.settings import Settings
from gateway.diagnosis.observation import DoctorFinding, failed, fine, noted


def look_at_engines(
    settings: Settings, gpus: Callable[[], Sequence[str]] = gpu_ids
) -> Iterator[DoctorFinding]:
    """Yield the findings; none if no engine is started here."""
    started = {
        name: pool
        for name, pool in settings.pools.items()
        if pool.engine.replicas and ENGINE_KINDS[pool.engine.kind].program is not None
    }
    if not started:
        yield noted("engines", "none is started on this machine")
        return
    for name, pool in started.items():
        place = pool.engine.environment or settings.state.resolve() / "engine"
        environment = Environment(Path(place))
        version = vllm_version(environment)
        if version is None:
            words = f"{environment.directory} has no vLLM"
            yield failed(f"pools.{name}", words, "run `breakeven engine install`")
        else:
            yield fine(f"pools.{name}", f"vLLM {version} in {environment.directory}")
    found = list(gpus())
    needed = sum(pool.engine.replicas * pool.gpu.count for pool in started.values())
    if flavour_here() == "cpu" and not found:
        yield noted("gpus", "no NVIDIA GPU is seen: engines here compute on the CPU")
    elif len(found) < needed:
        words = f"{len(found)} seen, {needed} needed"
        fix = "lower `replicas`, or let the container or CUDA_VISIBLE_DEVICES see them all"
        yield failed("gpus", words, fix)
    else:
        yield fine("gpus", f"{len(found)} seen, {needed} needed")
