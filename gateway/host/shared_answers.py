"""The parent's part of the response cache: memory that it gives each worker."""

import os

from gateway.config.settings import Settings
from gateway.request.cache.answer_memory import ANSWERS_FD, make_memory


class SharedAnswers:
    """Nothing without `response_cache.enabled`; the memory is gone with the last process."""

    def __init__(self, settings: Settings) -> None:
        section = settings.response_cache
        self._file = None
        if section.enabled:
            descriptor = make_memory(section.bytes, settings.server.workers)
            self._file = os.fdopen(descriptor, "r+b", buffering=0)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a worker inherits."""
        return () if self._file is None else (self._file.fileno(),)

    @property
    def variables(self) -> dict[str, str]:
        """What tells a worker its number."""
        return {} if self._file is None else {ANSWERS_FD: str(self._file.fileno())}
