"""Errors of bodies without an `error` member, in the formats of several providers.

MiniMax uses `base_resp`, Baidu `error_code`, DashScope and gateways `code` and `message`,
frameworks `detail`, Cloudflare `errors`, Apigee a `fault`, AWS a `__type`, Tencent an `Error` in
its `Response`, others a problem of RFC 9457. A body with any part of an answer is not an error;
usage of only zeros is no part of an answer.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from backends.usage_bytes import is_number
from backends.usage_places import usage_in

Reader = Callable[[Mapping[str, Any]], dict[str, Any] | None]

# Members with the results of an answer of any kind, or with its progress.
_ANSWERS: Final = ("choices", "content", "data", "output", "outputs", "results", "result", "text",
                   "candidates", "response", "predictions", "embeddings", "delta", "item",
                   "generated_text")  # fmt: skip
_CODES: Final = ("code", "error_code", "errorCode", "err_code", "errcode")
_STATUSES: Final = ("status", "statusCode", "status_code")
_MESSAGES: Final = ("message", "msg", "error_msg", "error_message", "errorMessage", "detail",
                    "title", "Message")  # fmt: skip
_SUCCESS: Final = frozenset(("", "0", "200", "ok", "success", "succeeded", "none"))
# Providers' own error numbers, with the equivalent HTTP status.
_MINIMAX: Final = {1001: 504, 1002: 429, 1004: 401, 1008: 402, 1013: 500, 1026: 400, 1027: 400,
                   1039: 429, 1041: 429, 2013: 400, 2049: 401, 2056: 429}  # fmt: skip
_BAIDU: Final = {2: 503, 4: 429, 6: 403, 13: 401, 14: 401, 15: 401, 17: 429, 18: 429, 19: 429,
                 110: 401, 111: 401, 336000: 500, 336100: 503, 336501: 429,
                 336502: 429}  # fmt: skip


def _of_base_resp(value: Mapping[str, Any]) -> dict[str, Any] | None:
    told = value.get("base_resp")
    if not isinstance(told, Mapping) or type(code := told.get("status_code")) is not int:
        return None
    error = {"code": _MINIMAX.get(code, code), "message": told.get("status_msg")}
    return error if code else None


def _of_baidu(value: Mapping[str, Any]) -> dict[str, Any] | None:
    code, message = value.get("error_code"), value.get("error_msg")
    if type(code) is not int or not code or not isinstance(message, str):
        return None
    return {"code": _BAIDU.get(code, code), "message": message}


def _of_fault(value: Mapping[str, Any]) -> dict[str, Any] | None:
    fault = value.get("fault")
    if not isinstance(fault, Mapping) or not fault:
        return None
    detail = fault.get("detail")
    code = detail.get("errorcode") if isinstance(detail, Mapping) else None
    return {"code": code, "message": fault.get("faultstring")}


def _of_aws(value: Mapping[str, Any]) -> dict[str, Any] | None:
    name = value.get("__type")
    if not isinstance(name, str) or not name:
        return None
    return {"type": name, "message": _message_of(value)}


def _of_tencent(value: Mapping[str, Any]) -> dict[str, Any] | None:
    told = value.get("Response")
    error = told.get("Error") if isinstance(told, Mapping) else None
    if not isinstance(error, Mapping) or not error:
        return None
    return {"code": error.get("Code"), "message": error.get("Message")}


def _of_errors(value: Mapping[str, Any]) -> dict[str, Any] | None:
    errors = value.get("errors")
    return _as_error(errors[0] if isinstance(errors, list) and errors else errors)


def _of_status(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a problem of RFC 9457, or the error of a gateway that repeats the status."""
    for name in _STATUSES:
        status = value.get(name)
        if type(status) is int and 400 <= status < 600:
            return {**_words_of(value), "status": status}
    return None


def _of_code(value: Mapping[str, Any]) -> dict[str, Any] | None:
    message = _message_of(value)
    for name in _CODES:
        code = value.get(name)
        told = type(code) in (int, str) and str(code).strip().lower() not in _SUCCESS
        if message is not None and told:
            return {**_words_of(value), "code": code}
    return None


def _of_detail(value: Mapping[str, Any]) -> dict[str, Any] | None:
    detail = value.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):
        return {"code": 422, "message": detail[0].get("msg")}  # FastAPI, of a request's member
    return _as_error(detail)


def _of_choice(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the error in the message or delta of a choice."""
    return words_error(value.get("message")) or words_error(value.get("delta"))


_WHOLE: Final[tuple[Reader, ...]] = (
    _of_base_resp, _of_baidu, _of_fault, _of_aws, _of_tencent, _of_errors, _of_status, _of_code,
    _of_detail,
)  # fmt: skip


def shaped_error(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the error in the form of an `error` member, `None` if there is none."""
    if (inside := _of_choice(value)) is not None:
        return inside
    if any(value.get(name) for name in _ANSWERS) or _counts(usage_in(value)):
        return None
    return next((error for read in _WHOLE if (error := read(value)) is not None), None)


def bare_message(value: Mapping[str, Any]) -> str | None:
    """Return the text of a body that has only a message, which may be an error."""
    if any(item for name, item in value.items() if name not in ("message", "request_id")):
        return None
    message = value.get("message")
    return message if isinstance(message, str) and message else None


def words_error(words: Any) -> dict[str, Any] | None:
    """Return the error in a choice's message, `None` if there is none."""
    return _as_error(words.get("error")) if isinstance(words, Mapping) else None


def _counts(told: Any) -> bool:
    """Return whether usage has any number other than zero."""
    if isinstance(told, Mapping):
        return any(map(_counts, told.values()))
    return any(map(_counts, told)) if isinstance(told, list) else is_number(told) and bool(told)


def _as_error(told: Any) -> dict[str, Any] | None:
    if isinstance(told, Mapping) and told:
        return dict(told)
    return {"message": told} if isinstance(told, str) and told else None


def _message_of(value: Mapping[str, Any]) -> str | None:
    texts = (value.get(name) for name in _MESSAGES)
    return next((text for text in texts if isinstance(text, str) and text), None)


def _words_of(value: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value[name] for name in ("type", "reason", "retry_after") if name in value}
    return {**kept, "message": _message_of(value)}
