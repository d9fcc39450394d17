"""Usage and stream relays of chat completions, completions and embeddings."""

from collections.abc import Mapping
from typing import Any

from gateway.kinds.engine_relay import EventRelay
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.relay import ByteRelay
from ledger.cache_conventions import Convention
from ledger.journals.records import TokenCounts
from ledger.usage import tokens_from_usage


def chat_usage(usage: Mapping[str, Any]) -> TokenCounts:
    return tokens_from_usage(usage, Convention.CACHED_INSIDE)


def chat_relay(asked: InferenceRequest, own: bool) -> ByteRelay:
    """Return the relay: for own engines one that removes running usage, else one for APIs."""
    choices, hide = asked.n * asked.prompts, not asked.wants_usage
    keep_running = asked.wants_running_usage
    if own:
        return EventRelay(hide, choices=choices, n=asked.n, keep_running=keep_running)
    return ByteRelay(hide, choices=choices, keep_running=keep_running)
