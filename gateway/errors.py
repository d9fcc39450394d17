"""Errors of the gateway and their one mapping to HTTP: kind -> status -> OpenAI type and code.

    GatewayError
    |-- ConfigError          the configuration file, every fault at once (no HTTP)
    `-- RequestError         one answer to one client, from the table below

A new kind of refusal needs a new row. Messages say what to do; secrets never appear in them.
"""

from typing import NamedTuple

import msgspec


class GatewayError(Exception):
    """Base of everything this package raises on purpose."""


class ConfigError(GatewayError):
    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class ErrorSpec(NamedTuple):
    status: int
    type: str
    code: str | None


TABLE: dict[str, ErrorSpec] = {
    "bad_request": ErrorSpec(400, "invalid_request_error", None),
    "bad_framing": ErrorSpec(400, "invalid_request_error", "malformed_http"),
    "duplicate_key": ErrorSpec(400, "invalid_request_error", "duplicate_key"),
    "unsupported": ErrorSpec(400, "invalid_request_error", "unsupported_parameter"),
    "context": ErrorSpec(400, "invalid_request_error", "context_length_exceeded"),
    "no_key": ErrorSpec(401, "invalid_request_error", "invalid_api_key"),
    "bad_key": ErrorSpec(401, "invalid_request_error", "invalid_api_key"),
    "forbidden": ErrorSpec(403, "permission_error", "forbidden"),
    "residency": ErrorSpec(403, "permission_error", "residency"),
    "isolation": ErrorSpec(403, "permission_error", "cache_isolation"),
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
    "budget": ErrorSpec(429, "insufficient_quota", "budget_exceeded"),
    "rate": ErrorSpec(429, "rate_limit_error", "rate_limit_exceeded"),
    "too_many_batches": ErrorSpec(429, "rate_limit_error", "too_many_batches"),
    "no_capacity": ErrorSpec(429, "rate_limit_error", "no_feasible_target"),
    "internal": ErrorSpec(500, "server_error", "internal_error"),
    "upstream": ErrorSpec(502, "server_error", "upstream_error"),
    "unavailable": ErrorSpec(503, "server_error", "unavailable"),
    "overloaded": ErrorSpec(503, "server_error", "overloaded"),
    "not_idle": ErrorSpec(503, "server_error", "no_idle_engine"),  # a line of a batch waits
    "not_onward": ErrorSpec(409, "server_error", "not_onward"),  # no provider's batch takes a line
    "made_room": ErrorSpec(503, "server_error", "made_room"),  # a line of a batch gave way
    "timeout": ErrorSpec(504, "server_error", "upstream_timeout"),
}


class RequestError(GatewayError):
    """What one client is told. `kind` is a key of `TABLE`; `retry=False` stops SDK retries.

    `backend`: the target that failed, for `x-breakeven-backend`.
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


def body(error: RequestError) -> bytes:
    """The OpenAI error body: all four members present."""
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
    """Free what an answered error still holds: the frames that raised it, which hold it in turn.

    Such rings wait for the collector. An outage leaves one with every refusal, and to collect fifty
    thousand objects at once stopped every stream of the worker for 80 ms, over and over.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
