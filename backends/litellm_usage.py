"""Usage of LiteLLM's answers as reported by their providers.

If a stream reports none, LiteLLM counts words with its own tokenizer and reports that as usage.
Only usage in chunks or in the provider's bytes is the provider's: Kimi has it in a choice, Groq in
`x_groq`, and LiteLLM reads neither. LiteLLM keeps only known members, adds its own total, and
computes a cost from its own prices. It also adds separate reasoning to the completion and drops
unknown details. The provider's bytes therefore take precedence where they can be read, then the
counts of a chunk.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from backends.messages_usage import chat_usage
from backends.sse import EventSplitter, data_spans, join_data
from backends.usage_bytes import decode_object, is_number
from backends.usage_places import sum_choices, usage_in

_TOTALS: Final = ("prompt_tokens", "completion_tokens")
# A quote within a text follows a backslash. Cohere's counts include its template.
_BILLED: Final = re.compile(rb'(?<!\\)"billed_units"\s*:\s*(\{[^{}]*\})')
_BILLED_NAMES: Final = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_DATA: Final = b"data:"
_BEGINS: Final = b'"message_start"'
_DETAILS: Final = "completion_tokens_details"
# Members that LiteLLM adds to a stream's counts.
_MADE_UP: Final = ("total_tokens", "cost")
_DETAILED: Final = frozenset((_DETAILS, "prompt_tokens_details"))
_WRAPPERS: Final = 4  # LiteLLM wraps streams in text streams


def provider_usage(
    summed: Mapping[str, Any] | None, stream: Any, tail: bytes
) -> dict[str, Any] | None:
    """Return the part of `summed` that the provider reported, or that its last bytes have.

    `None` if there is none. Usage followed by content is that of the start, and was read with it
    (`running_usage`).
    """
    chunks = _chunks_of(stream)
    if chunks is None:  # no LiteLLM stream that could estimate usage
        return None if summed is None else dict(summed)
    own = usage_in_events(tail)
    if own is not None and all(own.get(name) is not None for name in _TOTALS):
        return None if _goes_on(_chunks_in(tail), usage_in, chunk_says) else own
    told = [usage for chunk in chunks if (usage := _usage_of(chunk)) is not None]
    if _goes_on(chunks, _usage_of, _says):
        return None
    if summed is None or not _are_told(summed, told):
        return own
    is_detailed = any(usage.get(_DETAILS) is not None for usage in told)
    untold = {
        name for name in _MADE_UP if all(usage.get(name) != summed.get(name) for usage in told)
    }
    if not is_detailed:
        untold.add(_DETAILS)
    return {name: value for name, value in summed.items() if name not in untold}


def chunk_says(chunk: Mapping[str, Any]) -> bool:
    """Return whether a chat chunk has any model output."""
    choices = [choice for choice in chunk.get("choices") or () if isinstance(choice, dict)]
    return any(map(choice_says, choices))


def choice_says(choice: Mapping[str, Any]) -> bool:
    """Return whether a choice of a chunk has any model output."""
    delta = choice.get("delta")
    members = delta.items() if isinstance(delta, dict) else ()
    return any(value for name, value in members if name != "role") or bool(choice.get("text"))


def _says(chunk: Any) -> bool:
    dump = getattr(chunk, "model_dump", None)
    return dump is not None and chunk_says(dump(mode="json", exclude_none=True))


def _goes_on(
    chunks: Iterable[Any], usage_of: Callable[[Any], Any], says: Callable[[Any], bool]
) -> bool:
    """Return whether content follows the last chunk with usage, if there is one."""
    behind = False
    for chunk in reversed(list(chunks)):
        if usage_of(chunk) is not None:
            return behind
        behind = behind or says(chunk)
    return False


def running_usage(stream: Any, tail: bytes) -> dict[str, Any] | None:
    """Return the usage in the provider's last event with content, or `None`."""
    own = usage_in_events(tail[max(0, tail.rfind(_DATA)) :])
    if own is not None:
        return own if all(own.get(name) is not None for name in _TOTALS) else None
    chunks = _chunks_of(stream)
    return _usage_of(chunks[-1]) if chunks else None


def begun_usage(tail: bytes) -> dict[str, Any] | None:
    """Return the usage of the prompt at the start of a Messages stream, or `None`.

    LiteLLM reports it only at the end, and the client may disconnect before.
    """
    if _BEGINS not in tail:
        return None
    for value in _values_in(tail):
        message = value.get("message")
        if value.get("type") == "message_start" and isinstance(message, dict):
            usage = message.get("usage")
            return chat_usage(usage, begun=True) if isinstance(usage, dict) and usage else None
    return None


def answer_usage(usage: dict[str, Any] | None, body: bytes) -> dict[str, Any] | None:
    """Return the usage of a whole answer: the provider's own if the provider uses chat.

    `usage` is LiteLLM's, `body` the provider's answer or the end of it.
    """
    found = decode_object(body) if usage is not None else None
    if found is not None and isinstance(found.get("choices"), list):
        own = usage_in(found)
        if own is None or all(own.get(name) is not None for name in _TOTALS):
            return own
    return billed_usage(usage, body)


def billed_usage(usage: dict[str, Any] | None, tail: bytes) -> dict[str, Any] | None:
    """Return usage with the tokens that its provider bills, where it reports them."""
    found = _BILLED.findall(tail)
    units = decode_object(found[-1]) if found else None
    if usage is None or not units:
        return usage
    told = {
        name: int(units[unit])
        for unit, name in _BILLED_NAMES.items()
        if is_number(units.get(unit)) and units[unit] >= 0
    }
    if not told:
        return usage
    whole = {name: value for name, value in usage.items() if name not in _DETAILED}
    return {**whole, **told, "total_tokens": sum(told.values())}


def usage_in_events(tail: bytes) -> dict[str, Any] | None:
    """Return the last usage that chat chunks report, at any place."""
    own: dict[str, Any] | None = None
    choices: dict[int, dict[str, Any]] = {}
    for chunk in _chunks_in(tail):
        own = usage_in({**chunk, "choices": []}) or own
        for choice in chunk["choices"]:
            usage = usage_in({"usage": choice.get("usage")}) if isinstance(choice, dict) else None
            if usage is not None:
                index = choice.get("index")
                choices[index if type(index) is int else 0] = usage
    if own is None and choices:
        return sum_choices(list(choices.values()))
    return own


def _chunks_in(tail: bytes) -> Iterable[dict[str, Any]]:
    return (value for value in _values_in(tail) if isinstance(value.get("choices"), list))


def _values_in(tail: bytes) -> Iterable[dict[str, Any]]:
    """Yield the values of events; the first may be the end of an event."""
    splitter = EventSplitter()
    events = [*splitter.feed(tail), bytes(splitter.rest)]
    for event in events:
        spans = data_spans(event)
        try:
            value = msgspec.json.decode(join_data(event, spans)) if spans else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _chunks_of(stream: Any) -> list[Any] | None:
    """Return the provider's chunks with their usage, as LiteLLM kept them."""
    for _ in range(_WRAPPERS):
        chunks = getattr(stream, "chunks", None)
        if isinstance(chunks, list):
            return chunks
        stream = getattr(stream, "completion_stream", None)
    return None


def _usage_of(chunk: Any) -> dict[str, Any] | None:
    usage = getattr(chunk, "usage", None)
    if usage is None or isinstance(usage, dict):
        return usage
    plain: dict[str, Any] = usage.model_dump(mode="json", exclude_none=True)
    return plain


def _are_told(summed: Mapping[str, Any], told: list[dict[str, Any]]) -> bool:
    """Return whether each total equals that of a chunk, since LiteLLM takes the last of each."""
    return all(
        any((summed.get(name) or 0) == (usage.get(name) or 0) for usage in told) for name in _TOTALS
    )
