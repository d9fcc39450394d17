"""Errors in the body of a 200, mapped to the kind that the same HTTP status would give.

Providers send errors in a whole body, in a choice, or in any event of a stream, in several formats:
`code` as number or word, Google's `status`, Anthropic's `type`, a list of one, a bare text, or
without `error` member (`error_shapes`). The content decides, at any place (`read_error`). A failure
without a more specific code is a `StreamError`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from backends.charged_errors import charged_error
from backends.error_shapes import bare_message, shaped_error, words_error
from backends.errors import (
    BackendError,
    RequestDeclined,
    StreamError,
    UpstreamOverloaded,
    UpstreamRejected,
)
from backends.ratelimit import parse_duration, parse_retry_after
from backends.refusal import KEY_LIKE, refuses_account

LAYERS_LIMIT = 4  # objects in each other that are looked into
TEXT_LIMIT = 500  # characters of a message that are searched
_OVERLOADED = (429, 503, 529)
_NO_ANSWER_OF_THE_CLIENTS = (408, 499)  # the provider's own deadline, its own client's leaving
_UNSPECIFIC = (500, 502, 520)  # proxies give them to whatever failed behind them
_NUMBERS = ("status_code", "code", "status", "http_status", "http_code", "statusCode", "error_code")
_WORDS = ("code", "status", "type", "reason", "error_type", "error_code", "name", "__type")
_NO_MONEY = re.compile(
    r"insufficient(?:quota|balance|funds|credit)|billing(?:hardlimit|error|notactive)"
    r"|paymentrequired|creditbalance|arrearage|outofcredit"
)
# Matched on a code reduced to letters and digits; the first match counts.
_STATUS_OF_WORD: tuple[tuple[int, re.Pattern[str]], ...] = (
    (402, _NO_MONEY),
    (429, re.compile(r"ratelimit|toomanyrequests|resourceexhausted|throttl|quotaexceeded"
                     r"|requestlimit|concurrencylimit|limitexceeded|limitreached")),
    (503, re.compile(r"overload|unavailable|capacity|slowdown|busy|notready")),
    (401, re.compile(r"unauth|authentication|apikey|tokenexpired")),
    (403, re.compile(r"permission|forbidden|accessdenied")),
    (413, re.compile(r"toolarge")),
    (404, re.compile(r"notfound|notexist")),
    (400, re.compile(r"contextlength|contextwindow|content(?:filter|policy)|responsibleai|safety"
                     r"|moderation|datainspection|badrequest|validation|failedprecondition"
                     r"|invalid(?:argument|request|param|prompt|input|value|image|type)"
                     r"|unprocessable|unsupported|outofrange|abovemax")),
    (504, re.compile(r"timeout|timedout|deadline")),
    (500, re.compile(r"internal|servererror|apierror|upstream")),
)  # fmt: skip
# Matched on a message without a code or number. Only failures another target may avoid:
# a message can quote the request.
_STATUS_OF_TEXT: tuple[tuple[int, re.Pattern[str]], ...] = (
    (402, re.compile(r"insufficient (?:quota|balance|funds|credit)|exceeded your current quota")),
    (429, re.compile(r"rate.?limit|too many requests")),
    (503, re.compile(r"overloaded|at capacity|service unavailable|temporarily unavailable")),
)
_PLAIN = re.compile(r"[^a-z0-9]+")
_SECONDS = ("retry_after", "retry-after", "retryAfter", "retry_after_s", "retry_after_seconds",
            "retryDelay", "retry_delay")  # fmt: skip
_MILLISECONDS = ("retry_after_ms", "retry-after-ms", "retryAfterMs")


def read_error(raw: bytes) -> BackendError:
    """Return the error that an object, or its member `error`, reports."""
    value = _decoded(raw)
    layers = list(_layers(value))
    message = f"the upstream reported an error ({_name(layers)})"
    status = _status(layers)
    if status in _OVERLOADED:
        return UpstreamOverloaded(message, status=status, retry_after_s=_first_wait_s(layers))
    body = msgspec.json.encode({"error": layers[0]})
    if status is not None and refuses_account(status, body):
        return UpstreamRejected(message, status=status)
    if status is not None and status < 500 and status not in _NO_ANSWER_OF_THE_CLIENTS:
        declined = RequestDeclined(message, status=status)
        declined.body = body
        return declined
    return StreamError(message, status=status)


def told_wait_s(body: bytes) -> float | None:
    """Return the seconds to wait from an error's body, for use without a header."""
    return _first_wait_s(_layers(_decoded(body)))


def is_error(value: Any) -> bool:
    """Return whether a decoded body or event is an error by its content, without choices."""
    if isinstance(value, list):
        return len(value) > 0 and is_error(value[0])
    if not isinstance(value, dict):
        return False
    if bool(value.get("error")) or _is_named(value):
        return True
    if value.get("choices"):
        return False
    return shaped_error(value) is not None or _says_failure(bare_message(value))


def _is_named(value: Mapping[str, Any]) -> bool:
    return "error" in (value.get("object"), value.get("type"))


def _says_failure(message: str | None) -> bool:
    """Return whether a text alone says that the target is full or refuses us."""
    if message is None:
        return False
    return _first(_STATUS_OF_TEXT, [message[:TEXT_LIMIT].lower()]) is not None


def error_in(body: bytes) -> BackendError | None:
    """Return the error that a whole body is, or that all of its choices are.

    It is `UpstreamBroken` with its usage if the body has or counts output.
    """
    value = _decoded(body)
    if is_error(value):
        return charged_error(read_error(body), value)
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or not choices:
        return None
    if not all(isinstance(choice, dict) and _is_failed(choice) for choice in choices):
        return None
    return charged_error(read_error(msgspec.json.encode(choices[0])), value)


def error_in_events(tail: bytes) -> BackendError | None:
    """Return the error in the last events of a stream, or in a body that is no stream."""
    for line in reversed(tail.splitlines()):
        if line.startswith(b"data:") and line[5:].strip() not in (b"", b"[DONE]"):
            payload = line[5:].strip()
            return error_in(payload)
    return error_in(tail)


def error_name(error: bytes) -> str:
    """Return the error's code or type if it is a plain word."""
    try:
        value = msgspec.json.decode(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "unreadable"
    return _name([value] if isinstance(value, dict) else [])


def _name(layers: list[dict[str, Any]]) -> str:
    for layer in layers:
        for name in (layer.get("code"), layer.get("status"), layer.get("type")):
            if isinstance(name, str | int) and 0 < len(str(name)) <= 64 and name != "error":
                word = str(name)
                if all(c.isalnum() or c in "._-" for c in word) and not KEY_LIKE.search(word):
                    return word
    return "unnamed"


def _is_failed(choice: Mapping[str, Any]) -> bool:
    if bool(choice.get("error")) or choice.get("finish_reason") == "error":
        return True
    return any(words_error(choice.get(name)) for name in ("message", "delta"))


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _layers(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the error and the objects around it, innermost first; at least one object."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str):
        yield {"message": value}
    elif not isinstance(value, dict) or depth == LAYERS_LIMIT:
        yield {}
    elif isinstance(inner := value.get("error"), dict | str | list) and inner:
        yield from _layers(inner, depth + 1)
        yield {name: value.get(name) for name in {*_NUMBERS, *_WORDS, *_SECONDS} if name in value}
    elif depth == 0 and not _is_named(value) and (shaped := shaped_error(value)) is not None:
        yield from _layers(shaped, depth + 1)
    else:
        yield value


def _status(layers: list[dict[str, Any]]) -> int | None:
    """Return the HTTP status that the error would have had; `None` if unknown."""
    words = [_PLAIN.sub("", word.lower()) for word in _texts(layers, _WORDS)]
    if any(_NO_MONEY.search(word) for word in words):
        return 402
    number = next(_numbers(layers), None)
    if number is not None and number not in _UNSPECIFIC:
        return number
    said = _first(_STATUS_OF_WORD, words)
    if number is not None:
        return said if said in _OVERLOADED else number
    if said is not None and said != 500:
        return said
    messages = [text[:TEXT_LIMIT].lower() for text in _texts(layers, ("message", "detail"))]
    told = _first(_STATUS_OF_TEXT, messages)
    return told if told is not None else said


def _first(table: tuple[tuple[int, re.Pattern[str]], ...], texts: list[str]) -> int | None:
    for text in texts:
        for status, pattern in table:
            if pattern.search(text):
                return status
    return None


def _texts(layers: list[dict[str, Any]], names: tuple[str, ...]) -> Iterator[str]:
    for layer in layers:
        for name in names:
            value = layer.get(name)
            if isinstance(value, str):
                yield value


def _numbers(layers: list[dict[str, Any]]) -> Iterator[int]:
    for layer in layers:
        for name in _NUMBERS:
            value = layer.get(name)
            if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                yield value


def _first_wait_s(layers: Iterable[dict[str, Any]]) -> float | None:
    return next((wait_s for wait_s in map(_wait_s, layers) if wait_s is not None), None)


def _wait_s(error: dict[str, Any]) -> float | None:
    """Return a retry delay in an error: a member, a quoted header, or Google's `RetryInfo`."""
    metadata = error.get("metadata")
    places: list[Any] = [error, metadata]
    if isinstance(metadata, dict):
        places.append(metadata.get("headers"))
    details = error.get("details")
    if isinstance(details, list):
        places += details
    for place in places:
        if isinstance(place, dict) and (wait_s := _told_s(place)) is not None:
            return wait_s
    return None


def _told_s(place: dict[str, Any]) -> float | None:
    known = {str(name).lower() if "-" in str(name) else str(name): value
             for name, value in place.items()}  # fmt: skip
    found: dict[str, str] = {}
    for header, names in (("retry-after-ms", _MILLISECONDS), ("retry-after", _SECONDS)):
        for name in names:
            value = known.get(name)
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                text = str(value).strip()
                seconds = parse_duration(text)
                if seconds is not None:
                    found[header] = f"{seconds:.3f}"
    return parse_retry_after(found, wall_s=0.0) if found else None
