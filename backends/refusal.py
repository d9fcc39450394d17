"""Conversion of a target's refusal (4xx) to OpenAI's format, without internal details.

Engines and vendors use several formats (`code` as number, `detail` lists, plain text); OpenAI's
clients read `message`, `type`, `param` and `code`, text or null. The message is kept. Addresses and
paths of the target's machine are removed, which the client did not choose, and so are keys: ours,
and all that looks like one.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from backends.charged_errors import is_content_refusal
from backends.secret import HIDDEN, Secret, strike_out

INVALID = "invalid_request_error"
CONTEXT_LENGTH = "context_length_exceeded"
CONTENT_FILTER = "content_filter"
FORBIDDEN = 403
OUR_ACCOUNT = (401, 402, FORBIDDEN)  # our credentials and balance, not the client's
TOO_LONG = "maximum context length"  # in vLLM's and OpenAI's refusals alike
_TOO_LONG_STATUSES = (400, 413)
_CONTEXT_CODES = frozenset({CONTEXT_LENGTH, "exceed_context_size_error"})  # llama.cpp's own
# Other phrases for it. Limits of output and of tokens per minute differ: a longer context
# is no help there.
_LONG_PROMPT = re.compile(
    r"(?i)\b(?:prompt|input|conversation|request)s?(?: \([^()]{1,80}\))? (?:is|are) "
    r"(?:too long|longer than (?:the|this) (?:maximum model|model's))|request too large for model"
    r"|model's (?:maximum )?(?:context|prompt) length"
    r"|(?:maximum|exceed\w*)(?: the)?(?: model'?s?)?(?: available| maximum)? context"
    r"|context[ _](?:window|size|limit)|context the overflows"
    r"|maximum (?:model length|input length|prompt length)"
    r"|input token count\b.{0,40}\bexceeds|number of input tokens\b.{0,40}\bexceed"
    r"|(?:input|prompt) (?:tokens |length )?(?:\(\d+\) )?exceeds? (?:the )?(?:max|configured|limit)"
    r"|too many tokens: total number of tokens in the prompt|prompt has too many tokens"
    r"|exceeded model token limit|range of input length should be"
    r"|reduce the length of the (?:messages|prompt|input)|current length is \d+ while limit is"
)
# Text Generation Inference's and Together's; any other 422 is a malformed request.
_UNPROCESSABLE = 422
_UNPROCESSABLE_PROMPT = re.compile(
    r"`inputs` (?:tokens \+ `max_new_tokens` must be|must have less than)"
)
# Messages of vendors that refuse our key or balance with a plain 400.
# Matched at the start of a message, since later parts may quote the request.
_ACCOUNT = re.compile(
    r"(?i)(?:the )?api[ -]?key (?:is )?(?:not valid|invalid|not found|expired|has expired)"
    r"|(?:incorrect|invalid) api[ -]?key\b|your (?:credit )?balance is too low"
)
_SAID_LIMIT = 500  # characters of a message in which its vendor says what it is about
MESSAGE_LIMIT = 2000
DETAILS_LIMIT = 8

KEY_LIKE = re.compile(
    r"(?i)\bbearer\s+[\w.~+/*=\-]{6,}|\bsk-[\w*.\-]{6,}"
    r"|\b(?:rk|gsk|xai|nvapi|csk|hf|fw|gw|pplx)[-_][\w*\-]{16,}|\bAKIA\w{12,}|\bAIza[\w\-]{20,}"
)
_MODEL = re.compile(r"(?i)\b(?:model|deployment)(?:\b|_)")

_TYPE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CODE = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_PARAM = re.compile(r"[\w.\[\]\-]{1,256}")
_HOST = (
    r"(?:\[[0-9A-Fa-f:.%]+\]|localhost|(?:\d{1,3}\.){3}\d{1,3}"
    r"|[\w.\-]+\.(?:internal|local|lan|svc))"
)
_INSIDES = re.compile(
    rf"(?i)\bhttps?://(?:[^\s/@'\"]*@)?(?:{_HOST}|[\w\-]+)(?::\d+)?(?![\w.\-])[^\s'\"<>)]*"
    rf"|(?<![\w.]){_HOST}(?::\d{{1,5}})?(?![\w.]*\w)"
    r"|(?<![\w/.:])/(?:app|code|data|etc|home|mnt|models?|opt|root|srv|tmp|usr|var|workspace)/[\w./\-]+"
)


def openai_refusal(body: bytes, status: int, secrets: Collection[Secret] = ()) -> bytes:
    """Return the body that OpenAI would have sent; an unreadable body is replaced.

    `secrets`: the credentials that were sent.
    """
    found = _members(body)
    text = found.get("message")
    if not isinstance(text, str) or not text.strip():
        text = _details(found.get("detail")) or f"The target refused the request with {status}."
    text, known = strike_out(text, secrets), [secret.reveal() for secret in secrets]
    found = {name: value for name, value in found.items() if value not in known}
    code = _plain_code(found.get("code"), _CODE)
    if is_too_long(body, status):
        code = CONTEXT_LENGTH
    elif code is None and is_content_refusal(body):
        code = CONTENT_FILTER
    error = {
        "message": _struck(text[: 2 * MESSAGE_LIMIT])[:MESSAGE_LIMIT],
        "type": _plain_code(found.get("type"), _TYPE) or INVALID,
        "param": _plain_code(found.get("param"), _PARAM),
        "code": code,
    }
    return msgspec.json.encode({"error": error})


def is_too_long(body: bytes, status: int = 400) -> bool:
    """Return whether a refusal says that the prompt exceeds the target's context."""
    if status == _UNPROCESSABLE:
        return _UNPROCESSABLE_PROMPT.search(_said(_members(body))) is not None
    if status not in _TOO_LONG_STATUSES:
        return False
    if TOO_LONG.encode() in body:
        return True
    found = _members(body)
    words = [found.get(name) for name in ("code", "type")]
    if any(isinstance(word, str) and word in _CONTEXT_CODES for word in words):
        return True
    return _LONG_PROMPT.search(_said(found)) is not None


def is_about_account(body: bytes) -> bool:
    """Return whether a 400 refuses our key or balance, as Google's does."""
    return _ACCOUNT.match(_said(_members(body))) is not None


def refuses_account(status: int, body: bytes) -> bool:
    """Return whether a refusal is of our key or our balance, which no client can mend.

    A filter's 403 is not: it refuses what the client said, and our key is right.
    """
    if status == FORBIDDEN:
        return not is_content_refusal(body)
    return status in OUR_ACCOUNT or (status == 400 and is_about_account(body))


def is_about_model(body: bytes) -> bool:
    """Return whether a 404 is about the model; otherwise the path is wrong."""
    found = _members(body)
    said = (found.get("message"), found.get("detail"), found.get("code"))
    return any(isinstance(text, str) and _MODEL.search(text) for text in said)


def _said(found: Mapping[str, Any]) -> str:
    text = found.get("message")
    return text[:_SAID_LIMIT] if isinstance(text, str) else ""


def _struck(text: str) -> str:
    return _INSIDES.sub(HIDDEN, KEY_LIKE.sub(HIDDEN, text))


def _members(body: bytes) -> dict[str, Any]:
    """Return the members of an error: `error`, the first of `errors`, or the whole body."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    value = _first(value)  # Google sends a list of one
    if not isinstance(value, dict):
        return {}
    inner = value.get("error", _first(value.get("errors")) or value)
    if isinstance(inner, str):
        return {"message": inner}
    return inner if isinstance(inner, dict) else {}


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _details(detail: Any) -> str:
    """Return FastAPI's `detail` as text: a text, or a list of places and messages."""
    if isinstance(detail, str):
        return detail
    if not isinstance(detail, list):
        return ""
    told = []
    for item in detail[:DETAILS_LIMIT]:
        if isinstance(item, dict) and isinstance(item.get("msg"), str):
            place = item.get("loc")
            parts = [str(part) for part in place] if isinstance(place, list) else []
            told.append(f"{'.'.join(parts)}: {item['msg']}" if parts else item["msg"])
    return "; ".join(told)


def _plain_code(value: Any, form: re.Pattern[str]) -> str | None:
    """Return a code of that form; numbers are dropped, as they only repeat the status."""
    plain = isinstance(value, str) and form.fullmatch(value) and not KEY_LIKE.search(value)
    return value if plain else None
