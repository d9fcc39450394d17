"""Load order of engines that share a GPU: one loads at a time.

vLLM (0.25.1) reads the GPU's used memory at its start and after a first pass, and counts the
difference as its own. Memory that another engine allocates in between is missing from its KV cache.
If another engine releases more than vLLM allocated, vLLM exits.
"""

from collections.abc import Iterable


class GpuLoadQueue:
    """Load queue of a host's engines, by engine name."""

    def __init__(self) -> None:
        self._loading: dict[str, str] = {}  # the engine, by GPU

    def acquire(self, name: str, gpus: Iterable[str]) -> bool:
        """Reserve all GPUs. Return `False`, reserving none, if another engine loads into one."""
        wanted = dict.fromkeys(gpus, name)
        if any(self._loading.get(gpu, name) != name for gpu in wanted):
            return False
        self._loading |= wanted
        return True

    def release(self, name: str) -> None:
        """Release the GPUs of an engine that has loaded or ended, if it reserved any."""
        self._loading = {
            gpu: each_name for gpu, each_name in self._loading.items() if each_name != name
        }
