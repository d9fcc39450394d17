"""Errors of the gateway and their mapping to an HTTP status, an OpenAI type and a code.

    GatewayError
    |-- ConfigError          faults of the configuration file, all at once (no HTTP response)
    `-- RequestError         error response to one client, from the table below

A new kind of error needs a new row. Messages say what the client can do and contain no secrets.
"""

from enum import StrEnum
from typing import NamedTuple

import msgspec


class GatewayError(Exception):
    """Base class of all errors that this package raises on purpose."""


class ConfigError(GatewayError):
    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


_FAILED = 500  # the lowest status of a server error


class ErrorFault(StrEnum):
    """Origin of an error, sent to clients as `x-breakeven-fault`.

    `REQUEST`: change the request. `KEY`: use another key. `LIMIT`: a budget or rate limit of the
    client is used up. `CAPACITY`: retry later. `UPSTREAM`, `GATEWAY`: a target or the gateway
    failed.
    """

    REQUEST = "request"
    KEY = "key"
    LIMIT = "limit"
    CAPACITY = "capacity"
    UPSTREAM = "upstream"
    GATEWAY = "gateway"


class ErrorSpec(NamedTuple):
    status: int
    type: str
    code: str | None
    fault: ErrorFault = ErrorFault.REQUEST


TABLE: dict[str, ErrorSpec] = {
    "bad_request": ErrorSpec(400, "invalid_request_error", None),
    "bad_framing": ErrorSpec(400, "invalid_request_error", "malformed_http"),
    "duplicate_key": ErrorSpec(400, "invalid_request_error", "duplicate_key"),
    "unsupported": ErrorSpec(400, "invalid_request_error", "unsupported_parameter"),
    "socket_limit": ErrorSpec(400, "invalid_request_error", "websocket_connection_limit_reached"),
    "context": ErrorSpec(400, "invalid_request_error", "context_length_exceeded"),
    "content_filter": ErrorSpec(400, "invalid_request_error", "content_filter"),
    "no_key": ErrorSpec(401, "invalid_request_error", "invalid_api_key", ErrorFault.KEY),
    "bad_key": ErrorSpec(401, "invalid_request_error", "invalid_api_key", ErrorFault.KEY),
    "forbidden": ErrorSpec(403, "permission_error", "forbidden", ErrorFault.KEY),
    "residency": ErrorSpec(403, "permission_error", "residency", ErrorFault.KEY),
    "content": ErrorSpec(403, "permission_error", "content_may_not_leave"),
    "content_refused": ErrorSpec(400, "invalid_request_error", "content_refused"),
    "isolation": ErrorSpec(403, "permission_error", "cache_isolation", ErrorFault.KEY),
    "no_model": ErrorSpec(404, "invalid_request_error", "model_not_found"),
    "no_file": ErrorSpec(404, "invalid_request_error", "file_not_found"),
    "no_batch": ErrorSpec(404, "invalid_request_error", "batch_not_found"),
    "no_request": ErrorSpec(404, "invalid_request_error", "request_not_found"),
    "not_found": ErrorSpec(404, "invalid_request_error", "not_found"),
    "no_previous_response": ErrorSpec(404, "invalid_request_error", "previous_response_not_found"),
    "no_such_key": ErrorSpec(404, "invalid_request_error", "key_not_found"),
    "no_what_if": ErrorSpec(404, "invalid_request_error", "what_if_not_found"),
    "no_route": ErrorSpec(404, "invalid_request_error", "unknown_url"),
    "not_served": ErrorSpec(404, "invalid_request_error", "endpoint_not_served"),
    "method": ErrorSpec(405, "invalid_request_error", "method_not_allowed"),
    "slow_client": ErrorSpec(408, "invalid_request_error", "request_timeout"),
    "duplicate_request": ErrorSpec(409, "invalid_request_error", "duplicate_request"),
    "file_in_use": ErrorSpec(409, "invalid_request_error", "file_in_use"),
    "policies_moved": ErrorSpec(409, "invalid_request_error", "policies_moved"),
    "prices_moved": ErrorSpec(409, "invalid_request_error", "prices_moved"),
    "what_if_busy": ErrorSpec(409, "invalid_request_error", "what_if_busy"),
    "too_large": ErrorSpec(413, "invalid_request_error", "request_too_large"),
    "media_type": ErrorSpec(415, "invalid_request_error", "unsupported_media_type"),
    "reused_key": ErrorSpec(422, "invalid_request_error", "idempotency_key_reused"),
    "head_too_large": ErrorSpec(431, "invalid_request_error", "request_headers_too_large"),
    "budget": ErrorSpec(429, "insufficient_quota", "budget_exceeded", ErrorFault.LIMIT),
    "rate": ErrorSpec(429, "rate_limit_error", "rate_limit_exceeded", ErrorFault.LIMIT),
    "too_many_batches": ErrorSpec(429, "rate_limit_error", "too_many_batches", ErrorFault.LIMIT),
    "no_capacity": ErrorSpec(429, "rate_limit_error", "no_feasible_target", ErrorFault.CAPACITY),
    "internal": ErrorSpec(500, "server_error", "internal_error", ErrorFault.GATEWAY),
    "upstream": ErrorSpec(502, "server_error", "upstream_error", ErrorFault.UPSTREAM),
    "unavailable": ErrorSpec(503, "server_error", "unavailable", ErrorFault.CAPACITY),
    "overloaded": ErrorSpec(503, "server_error", "overloaded", ErrorFault.CAPACITY),
    "not_idle": ErrorSpec(
        503, "server_error", "no_idle_engine", ErrorFault.CAPACITY
    ),  # a batch line waits for idle capacity
    "not_onward": ErrorSpec(
        409, "server_error", "not_onward", ErrorFault.CAPACITY
    ),  # no provider batch accepts the line
    "made_room": ErrorSpec(
        503, "server_error", "made_room", ErrorFault.CAPACITY
    ),  # a batch line was preempted
    "timeout": ErrorSpec(504, "server_error", "upstream_timeout", ErrorFault.UPSTREAM),
}


class RequestError(GatewayError):
    """Error response to one client. `kind` is a key of `TABLE`.

    `retry=False` tells SDKs not to retry. `backend` is the target that failed, sent as
    `x-breakeven-backend`.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        param: str | None = None,
        retry_after_s: float | None = None,
        retry: bool | None = None,
        backend: str | None = None,
    ) -> None:
        super().__init__(message)
        self.row = TABLE[kind]
        self.kind = kind
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s
        self.retry = retry
        self.backend = backend

    @property
    def fault(self) -> ErrorFault:
        """Return the origin of the error; `UPSTREAM` for a 5xx that names a target."""
        failed = self.backend is not None and self.row.status >= _FAILED
        return ErrorFault.UPSTREAM if failed else self.row.fault


def invalid_error(place: str, why: str) -> RequestError:
    """Return a 400 error for an invalid field; `why` follows the field's name in the message."""
    return RequestError("bad_request", f"`{place}` {why}", param=place)


def fault_header(fault: ErrorFault) -> tuple[bytes, bytes]:
    return b"x-breakeven-fault", fault.value.encode()


def body(error: RequestError) -> bytes:
    """Return the JSON error body in OpenAI's format, with all four members."""
    return msgspec.json.encode(
        {
            "error": {
                "message": error.message,
                "type": error.row.type,
                "param": error.param,
                "code": error.row.code,
            }
        }
    )


def drop_traceback(error: BaseException | None) -> None:
    """Clear the tracebacks of an error and its causes, to break reference cycles.

    An error and the frames of its traceback refer to each other, so each refusal would leave a
    cycle for the garbage collector. During an outage, collecting 50,000 such objects at once
    blocked every stream of the worker for 80 ms, repeatedly.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
