"""Checks of the response cache: one without users, or too small for its answers."""

from collections.abc import Iterator

from gateway.config.aliases import logical_models
from gateway.config.faults import ConfigFault, suggest
from gateway.config.schema import Settings

LEAST_ANSWERS = 4  # minimum answers of the largest size per worker


def check_response_cache(settings: Settings) -> Iterator[ConfigFault]:
    section, workers = settings.response_cache, settings.server.workers
    if not section.enabled:
        return
    here = ("response_cache",)
    names = frozenset(name for name, _ in logical_models(settings))
    is_open = any(name.endswith("/*") for name in settings.models)
    for name in section.models:
        if name not in names and not is_open:
            words = f"no model named `{name}`{suggest(name, names)}"
            yield ConfigFault((*here, "models"), f"{words}; name models, not aliases")
    room = section.bytes // workers // LEAST_ANSWERS
    if section.answer_bytes > room:
        words = f"must be at most {room}: each of {workers} workers has a part of `bytes`, and "
        yield ConfigFault(
            (*here, "answer_bytes"), f"{words}{LEAST_ANSWERS} answers fit into it; raise `bytes`"
        )
