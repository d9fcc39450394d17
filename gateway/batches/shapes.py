"""Files, batches and output lines in the format of OpenAI's API. No I/O."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ledger.batches.files import FileRecord
from ledger.batches.store import BatchRecord

EXPIRED, CANCELLED, NO_ANSWER = "batch_expired", "batch_cancelled", "no_answer"
_MESSAGES = {
    EXPIRED: "This request could not be executed before the completion window expired.",
    CANCELLED: "The batch was cancelled before this request was executed.",
    NO_ANSWER: "Every try of this request ended without an answer.",
}
IGNORED = "x-breakeven-ignored"
_US = 1_000_000


def file_object(record: FileRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "object": "file",
        "bytes": record.bytes,
        "created_at": record.created_us // _US,
        "expires_at": record.expires_us // _US,
        "filename": record.filename,
        "purpose": record.purpose,
        "status": record.status,
        "status_details": None,
    }


def batch_object(record: BatchRecord) -> dict[str, Any]:
    times = {
        f"{name}_at": None if at_us is None else at_us // _US
        for name, at_us in (
            ("created", record.created_us),
            ("in_progress", record.in_progress_us),
            ("expires", record.expires_us),
            ("finalizing", record.finalizing_us),
            ("completed", record.completed_us),
            ("failed", record.failed_us),
            ("expired", record.expired_us),
            ("cancelling", record.cancelling_us),
            ("cancelled", record.cancelled_us),
        )
    }
    return {
        "id": record.id,
        "object": "batch",
        "endpoint": record.endpoint,
        "errors": None if record.errors is None else {"object": "list", "data": record.errors},
        "input_file_id": record.input_file_id,
        "completion_window": record.completion_window,
        "status": record.status,
        "output_file_id": record.output_file_id,
        "error_file_id": record.error_file_id,
        **times,
        "request_counts": {
            "total": record.total, "completed": record.completed, "failed": record.failed,
        },
        "usage": record.usage,
        "metadata": record.labels,
    }  # fmt: skip


def page(objects: Sequence[dict[str, Any]], *, more: bool) -> dict[str, Any]:
    """Return one page of a list; pass its `last_id` as `after` for the next page."""
    return {
        "object": "list",
        "data": list(objects),
        "first_id": objects[0]["id"] if objects else None,
        "last_id": objects[-1]["id"] if objects else None,
        "has_more": more,
    }


class LineResponse(NamedTuple):
    """Response to a line; `ignored` names the members that no target got."""

    status: int
    request_id: str
    body: bytes
    ignored: str | None = None


def answered_line(batch_id: str, number: int, custom_id: str, told: LineResponse) -> bytes:
    """Return the output line of a response, successful or not, without inner line breaks."""
    response: dict[str, Any] = {
        "status_code": told.status,
        "request_id": told.request_id,
        "body": msgspec.Raw(msgspec.json.format(told.body, indent=-1)),
    }
    if told.ignored:
        response["headers"] = {IGNORED: told.ignored}
    return _line(batch_id, number, custom_id, response, None)


def unanswered_line(batch_id: str, number: int, custom_id: str, *, code: str) -> bytes:
    """Return the output line of a line that ended without a response, with the reason `code`."""
    error = {"code": code, "message": _MESSAGES[code]}
    return _line(batch_id, number, custom_id, None, error)


def _line(
    batch_id: str,
    number: int,
    custom_id: str,
    response: dict[str, Any] | None,
    error: dict[str, str] | None,
) -> bytes:
    return msgspec.json.encode(
        {
            "id": f"batch_req_{batch_id.removeprefix('batch_')}_{number}",
            "custom_id": custom_id,
            "response": response,
            "error": error,
        }
    )
