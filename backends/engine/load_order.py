"""The queue of engines that load into a GPU: one at a time.

vLLM (0.25.1) asks the driver what is used when it starts and again after a first pass, and takes
the difference for its own: what a neighbour takes meanwhile is missing from its KV cache, and
where one gives more back than it took itself, it ends.
"""

from collections.abc import Iterable


class GpuLoadQueue:
    """The load queue of a host's engines, by their names."""

    def __init__(self) -> None:
        self._loading: dict[str, str] = {}  # the engine, by GPU

    def acquire(self, name: str, gpus: Iterable[str]) -> bool:
        """Return all of them, or none and false while another engine loads into one."""
        wanted = dict.fromkeys(gpus, name)
        if any(self._loading.get(gpu, name) != name for gpu in wanted):
            return False
        self._loading |= wanted
        return True

    def release(self, name: str) -> None:
        """End an engine's turn after it loaded or ended; without a turn nothing happens."""
        self._loading = {
            gpu: each_name for gpu, each_name in self._loading.items() if each_name != name
        }
