"""Shared memory of the response cache, which the parent gives to each worker."""

import os
from weakref import finalize

from gateway.config.settings import Settings
from gateway.request.cache.answer_memory import ANSWERS_FD, make_memory


class SharedAnswers:
    """Memory of the response cache, if enabled; it is freed with the last process."""

    def __init__(self, settings: Settings) -> None:
        section = settings.response_cache
        # The inherited descriptor, and the variable with its number.
        self.descriptors: tuple[int, ...] = ()
        self.variables: dict[str, str] = {}
        if section.enabled:
            descriptor = make_memory(section.bytes, settings.server.workers)
            self.descriptors, self.variables = (descriptor,), {ANSWERS_FD: str(descriptor)}
            finalize(self, os.close, descriptor)
