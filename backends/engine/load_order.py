"""Whose turn it is to load into a GPU: one engine at a time.

vLLM (0.25.1) asks the driver what is used when it starts and again after a first pass, and takes
the difference for its own: what a neighbour takes meanwhile is missing from its KV cache, and
where one gives more back than it took itself, it ends.
"""

from collections.abc import Iterable


class GpuLoadQueue:
    """Of the engines of one host, by their names."""

    def __init__(self) -> None:
        self._loading: dict[str, str] = {}  # the engine, by GPU

    def acquire(self, name: str, gpus: Iterable[str]) -> bool:
        """All of them, or none and false while another engine loads into one."""
        wanted = dict.fromkeys(gpus, name)
        if any(self._loading.get(gpu, name) != name for gpu in wanted):
            return False
        self._loading |= wanted
        return True

    def release(self, name: str) -> None:
        """It has loaded, or it has ended; without a turn nothing happens."""
        self._loading = {
            gpu: each_name for gpu, each_name in self._loading.items() if each_name != name
        }
