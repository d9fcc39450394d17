"""Conversion between Anthropic's message batches and stored batches. No I/O.

Each request becomes a line for `/v1/messages`. Ids and states differ from OpenAI's; the answer of a
line becomes one of four result types.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from gateway.batches.inputlines import InputFault, InputLines
from gateway.batches.shapes import CANCELLED, EXPIRED
from gateway.errors import RequestError
from ledger.batches.store import BatchRecord

ENDPOINT: Final = "/v1/messages"
PREFIX: Final = "msgbatch_"
PATH: Final = "/v1/messages/batches"
_ENDED: Final = ("completed", "failed", "expired", "cancelled")
_PLACES: Final = {"custom_id": "custom_id", "body": "params"}


class BatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    custom_id: str
    params: msgspec.Raw


class BatchCreation(msgspec.Struct, forbid_unknown_fields=True):
    """Request body that creates a batch."""

    requests: list[BatchRequest]


def read_creation(text: bytes) -> list[BatchRequest]:
    """Parse the body. Raises `RequestError` naming the invalid member."""
    try:
        requests = msgspec.json.decode(text, type=BatchCreation).requests
    except msgspec.ValidationError as error:
        raise RequestError("bad_request", f"The body: {error}.", param="requests") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError("bad_request", f"The body is not valid JSON: {error}") from error
    if not requests:
        raise RequestError(
            "bad_request", "`requests` must have at least one request.", param="requests"
        )
    return requests


def input_lines(
    requests: Sequence[BatchRequest], reader: InputLines, *, line_bytes: int
) -> Iterator[bytes]:
    """Yield the lines of the input file with line breaks. Raises `RequestError`."""
    for number, asked in enumerate(requests):
        body = msgspec.Raw(msgspec.json.format(bytes(asked.params), indent=-1))
        line = msgspec.json.encode(
            {"custom_id": asked.custom_id, "method": "POST", "url": ENDPOINT, "body": body}
        )
        if len(line) > line_bytes:
            message = f"The request is larger than {line_bytes} bytes."
            raise RequestError("too_large", message, param=f"requests[{number}]")
        fault = reader.read(line, number + 1)
        if isinstance(fault, InputFault):
            place = fault.param or "params"
            first, dot, rest = place.partition(".")
            param = f"requests[{number}].{_PLACES.get(first, first)}{dot}{rest}"
            kind = "no_model" if fault.code == "model_not_found" else "bad_request"
            raise RequestError(kind, f"`{param}`: {fault.message}", param=param)
        yield line + b"\n"


def message_batch(record: BatchRecord, site: str) -> dict[str, Any]:
    """Return the batch as JSON, with URLs at the address `site`.

    Requests without a line at the end of the batch count as not answered.
    """
    ended = record.status in _ENDED
    was_cancelled = record.cancelling_us is not None
    unanswered = 0
    if record.status in ("cancelled", "expired"):
        unanswered = (record.unanswered or 0) + record.total - record.completed - record.failed
    counts = {"processing": 0 if ended else record.total, "succeeded": 0, "errored": 0}
    counts |= {"canceled": 0, "expired": 0}
    if ended:
        counts["succeeded"] = record.completed
        counts["errored"] = record.total - record.completed - unanswered
        counts["canceled" if was_cancelled else "expired"] = unanswered
    state = "ended" if ended else "canceling" if was_cancelled else "in_progress"
    return {
        "id": record.id,
        "type": "message_batch",
        "processing_status": state,
        "request_counts": counts,
        "created_at": _time(record.created_us),
        "expires_at": _time(record.expires_us),
        "ended_at": _time(_ended_us(record)),
        "cancel_initiated_at": _time(record.cancelling_us),
        "archived_at": None,
        "results_url": f"{site}{PATH}/{record.id}/results" if ended else None,
    }


def batch_page(objects: Sequence[dict[str, Any]], *, more: bool) -> dict[str, Any]:
    return {
        "data": list(objects),
        "has_more": more,
        "first_id": objects[0]["id"] if objects else None,
        "last_id": objects[-1]["id"] if objects else None,
    }


def is_ended(record: BatchRecord) -> bool:
    return record.status in _ENDED


def result_line(line: bytes) -> bytes:
    """Convert a line of an output or error file to Anthropic's result line."""
    custom_id = msgspec.json.decode(line)["custom_id"]
    return msgspec.json.encode({"custom_id": custom_id, "result": _result(line)}) + b"\n"


def unread_line(line: bytes, record: BatchRecord) -> bytes:
    """Return the result of a request whose batch ended before any line was tried."""
    if record.status == "failed":
        words = "; ".join(str(fault.get("message")) for fault in (record.errors or [])[:3])
        result = _errored("invalid_request_error", words or "The batch could not be read.")
    else:
        result = {"type": "canceled" if record.cancelling_us is not None else "expired"}
    custom_id = msgspec.json.decode(line).get("custom_id")
    return msgspec.json.encode({"custom_id": custom_id, "result": result}) + b"\n"


def _result(line: bytes) -> dict[str, Any]:
    told = msgspec.json.decode(line)
    response, error = told.get("response"), told.get("error") or {}
    if response is not None:
        more = {"headers": response["headers"]} if "headers" in response else {}
        if response["status_code"] == 200:
            return {"type": "succeeded", "message": response["body"], **more}
        return {"type": "errored", "error": response["body"], **more}
    ends = {CANCELLED: "canceled", EXPIRED: "expired"}
    if error.get("code") in ends:
        return {"type": ends[error["code"]]}
    return _errored("api_error", str(error.get("message")))


def _errored(kind: str, message: str) -> dict[str, Any]:
    error = {"type": kind, "message": message}
    return {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}


def _ended_us(record: BatchRecord) -> int | None:
    return getattr(record, f"{record.status}_us") if record.status in _ENDED else None


def _time(at_us: int | None) -> str | None:
    if at_us is None:
        return None
    return datetime.fromtimestamp(at_us / 1e6, tz=UTC).isoformat().replace("+00:00", "Z")
