"""Errors that a provider may charge for: output was generated before the failure.

A provider may charge for output that it sent or counted before a failure, whatever the error and
status. It may also charge for a prompt that a content filter read and refused, and for output until
its own deadline: Azure bills both ("even if the status code is not 200").
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from backends.errors import BackendError, broken_by
from backends.usage_places import billed_usage_in, counts_output

FILTERED: Final = "content_filter"
# Providers' codes; a message counts only if it is a vendor's fixed sentence (Anthropic's,
# Azure's, DeepSeek's, xAI's, OpenAI's, OpenRouter's, Zhipu's), for a message may quote the request.
_FILTER_WORD: Final = re.compile(
    r"(?i)content_?(?:filter|policy)|responsible_?ai|data_?inspection|moderation_(?:block|refus)"
    r"|^invalid_prompt$"
)
_FILTER_TEXT: Final = re.compile(
    r"(?i)^output blocked by content filtering policy|triggering .{0,40}content management policy"
    r"|^content exists risk$|^content violates usage guidelines|^invalid prompt: your prompt was "
    r"flagged|requires moderation\b.{0,80}\byour input was flagged|^(?:the )?system detected "
    r"potentially unsafe|^系统检测到.{0,30}(?:不安全|敏感)"
)
_TEXT_LIMIT: Final = 500
_FILTERS: Final = frozenset((FILTERED, "ResponsibleAIPolicyViolation"))


def charged_error(reported: BackendError, value: Any) -> BackendError:
    """Return the error to charge: `UpstreamBroken` if output was generated or counted.

    `value` is the decoded body. Usage of only a prompt is not output: no work was done.
    """
    if isinstance(value, list):  # Google sends a list of one
        value = value[0] if value else None
    if not isinstance(value, Mapping):
        return reported
    usage = billed_usage_in(value)
    counted = _is_counted(value, usage)
    if reported.billable:
        reported.usage = usage if counted else None
        return reported
    if not counted and not _says(value.get("choices")):
        return reported
    broken = broken_by(reported)
    broken.usage = usage if counted else None
    return broken


def charge_status(error: BackendError, body: bytes) -> BackendError:
    """Return an HTTP status error, marked as charged if its body has or counts output."""
    usage = refusal_usage(body)
    if usage is not None:
        error.usage, error.charges = usage, True
    elif _says((_object_of(body) or {}).get("choices")):
        error.charges = True
    return error


def refusal_usage(body: bytes) -> Mapping[str, Any] | None:
    """Return the usage in the body of an error if it counts output, else `None`."""
    value = _object_of(body)
    usage = None if value is None else billed_usage_in(value)
    return usage if value is not None and _is_counted(value, usage) else None


def is_filtered(body: bytes) -> bool:
    """Return whether the error's code says that a content filter read and refused the prompt."""
    error = (_object_of(body) or {}).get("error")
    if not isinstance(error, Mapping):
        return False
    inner = error.get("innererror")
    codes = [error.get("code"), inner.get("code") if isinstance(inner, Mapping) else None]
    return any(code in _FILTERS for code in codes if isinstance(code, str))


def is_content_refusal(body: bytes) -> bool:
    """Return whether a content filter refused, by the error's code or, without one, its text.

    This covers more than `is_filtered`: not every provider charges for it.
    """
    error = (_object_of(body) or {}).get("error")
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, Mapping):
        return False
    inner = error.get("innererror")
    layers = [error, inner] if isinstance(inner, Mapping) else [error]
    words = [layer.get(name) for layer in layers for name in ("code", "type", "status")]
    if any(isinstance(word, str) and _FILTER_WORD.search(word) for word in words):
        return True
    text = error.get("message")
    return isinstance(text, str) and _FILTER_TEXT.search(text[:_TEXT_LIMIT]) is not None


def _object_of(body: bytes) -> Mapping[str, Any] | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, Mapping) else None


def _is_counted(value: Mapping[str, Any], usage: Mapping[str, Any] | None) -> bool:
    return usage is not None and (counts_output(usage) or _has_results(value))


def _has_results(value: Mapping[str, Any]) -> bool:
    """Return whether embeddings, a ranking or a transcript exist: their usage has no output."""
    kinds = (("data", list), ("results", list), ("text", str))
    return any(bool(value.get(name)) and isinstance(value[name], kind) for name, kind in kinds)


def _says(choices: Any) -> bool:
    return isinstance(choices, list) and any(
        isinstance(choice, Mapping) and (bool(choice.get("text")) or _has_words(choice))
        for choice in choices
    )


def _has_words(choice: Mapping[str, Any]) -> bool:
    return any(
        any(value for name, value in words.items() if name not in ("role", "error"))
        for words in (choice.get("message"), choice.get("delta"))
        if isinstance(words, Mapping)
    )
