"""The parent's part of the response cache: memory that it gives each worker."""

import os
from weakref import finalize

from gateway.config.settings import Settings
from gateway.request.cache.answer_memory import ANSWERS_FD, make_memory


class SharedAnswers:
    """Nothing without `response_cache.enabled`; the memory is gone with the last process."""

    def __init__(self, settings: Settings) -> None:
        section = settings.response_cache
        # What a worker inherits, and what tells it the number.
        self.descriptors: tuple[int, ...] = ()
        self.variables: dict[str, str] = {}
        if section.enabled:
            descriptor = make_memory(section.bytes, settings.server.workers)
            self.descriptors, self.variables = (descriptor,), {ANSWERS_FD: str(descriptor)}
            finalize(self, os.close, descriptor)
