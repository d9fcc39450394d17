"""A simulated provider's files and batches in OpenAI's format, kept in memory.

    POST/GET /v1/files, GET/DELETE /v1/files/ID, GET /v1/files/ID/content
    POST/GET /v1/batches, GET /v1/batches/ID, POST /v1/batches/ID/cancel

Each line is a request to the provider itself, so its journal has an entry for each.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qs

import msgspec

from backends.simulator import asgi
from backends.simulator.asgi import Receive, Scope, Send
from backends.simulator.routes import BATCH_ROUTES

PATHS = ("/v1/files", "/v1/batches")
LISTED = 20
WINDOW_S = 86_400
ENDPOINTS = tuple(BATCH_ROUTES)
Ask = Callable[[str, bytes, str], Awaitable[tuple[int, bytes]]]
"""(path, body, request id) -> (status, body) of one line."""


class BadCallError(Exception):
    """A refused call with a status and a message for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class _File:
    id: str
    name: str
    purpose: str
    text: bytes
    made_s: int

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id, "object": "file", "bytes": len(self.text), "created_at": self.made_s,
            "filename": self.name, "purpose": self.purpose, "status": "processed",
        }  # fmt: skip


@dataclass(slots=True)
class _Batch:
    id: str
    endpoint: str
    input_file_id: str
    metadata: Mapping[str, str] | None
    made_s: int
    status: str = "validating"
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(
        default_factory=lambda: {"total": 0, "completed": 0, "failed": 0}
    )

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id, "object": "batch", "endpoint": self.endpoint,
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "input_file_id": self.input_file_id, "completion_window": "24h",
            "status": self.status, "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id, "created_at": self.made_s,
            "expires_at": self.made_s + WINDOW_S, "request_counts": self.counts,
            "metadata": self.metadata,
        }  # fmt: skip


@dataclass(slots=True)
class SimulatedBatches:
    """Batches of a provider. A batch waits `begin_s`, and expires after `most` lines if set.

    `made` counts every batch; `files` and `batches` hold the existing ones.
    """

    ask: Ask
    begin_s: float = 2.0
    most: int | None = None
    made: int = 0
    files: dict[str, _File] = field(default_factory=dict)
    batches: dict[str, _Batch] = field(default_factory=dict)
    _number: int = 0
    _running: set[asyncio.Task[None]] = field(default_factory=set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await asgi.read_body(receive) if scope["method"] == "POST" else b""
            await self._answer(scope, body, send)
        except asgi.GoneError:
            return
        except BadCallError as error:
            told = {"message": str(error), "type": "invalid_request_error", "code": None}
            await asgi.reply_json(send, error.status, {"error": told})

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    async def _answer(self, scope: Scope, body: bytes, send: Send) -> None:
        method, (_, _, kind, *rest) = scope["method"], scope["path"].split("/")
        if method == "POST" and not rest:
            shown = (
                self._upload(scope, body) if kind == "files" else self._create(body)
            ).document()
            await asgi.reply_json(send, 200, shown)
        elif method == "GET" and not rest:
            await asgi.reply_json(send, 200, self._page(kind, scope))
        elif method == "GET" and rest[1:] == ["content"] and kind == "files":
            text = self._file(rest[0]).text
            await asgi.reply(send, 200, text, content_type=(b"content-type", b"application/jsonl"))
        elif method == "GET" and not rest[1:]:
            found = (self._file(rest[0]) if kind == "files" else self._batch(rest[0])).document()
            await asgi.reply_json(send, 200, found)
        elif method == "POST" and rest[1:] == ["cancel"] and kind == "batches":
            await asgi.reply_json(send, 200, self._cancel(rest[0]).document())
        elif method == "DELETE" and kind == "files" and not rest[1:]:
            del self.files[self._file(rest[0]).id]
            await asgi.reply_json(send, 200, {"id": rest[0], "object": "file", "deleted": True})
        else:
            raise BadCallError(404, "no such route")

    def _upload(self, scope: Scope, body: bytes) -> _File:
        head = f"content-type: {asgi.header(scope, b'content-type')}\r\n\r\n".encode("latin-1")
        form = BytesParser(policy=HTTP).parsebytes(head + body)
        found: dict[str, Message] = {
            str(part.get_param("name", header="content-disposition")): part
            for part in form.walk()
            if not part.is_multipart()
        }
        file, purpose = found.get("file"), found.get("purpose")
        if file is None or purpose is None:
            raise BadCallError(400, "`file` and `purpose` are required")
        text = file.get_payload(decode=True)
        assert isinstance(text, bytes)
        return self._keep(file.get_filename() or "file", str(purpose.get_payload()).strip(), text)

    def _keep(self, name: str, purpose: str, text: bytes) -> _File:
        made = _File(self._id("file-"), name, purpose, text, int(time.time()))
        self.files[made.id] = made
        return made

    def _create(self, body: bytes) -> _Batch:
        try:
            asked = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise BadCallError(400, str(error)) from error
        file = self._file(str(asked.get("input_file_id")))
        if asked.get("endpoint") not in ENDPOINTS:
            raise BadCallError(400, "`endpoint` is unknown")
        marks = asked.get("metadata")
        made = _Batch(self._id("batch_"), asked["endpoint"], file.id, marks, int(time.time()))
        self.batches[made.id] = made
        self.made += 1
        task = asyncio.get_running_loop().create_task(self._run(made, file.text))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return made

    async def _run(self, batch: _Batch, text: bytes) -> None:
        lines = [line for line in text.splitlines() if line.strip()]
        batch.counts["total"] = len(lines)
        await asyncio.sleep(self.begin_s / 2)
        if batch.status == "validating":
            batch.status = "in_progress"
        await asyncio.sleep(self.begin_s / 2)
        output: list[bytes] = []
        errors: list[bytes] = []
        for place, line in enumerate(lines):
            asked = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            custom_id = msgspec.json.decode(asked["custom_id"], type=str)
            if batch.status == "cancelling" or (self.most is not None and place >= self.most):
                why = "batch_cancelled" if batch.status == "cancelling" else "batch_expired"
                errors.append(_undone_line(custom_id, why))
                continue
            status, answer = await self.ask(batch.endpoint, bytes(asked["body"]), custom_id)
            (output if status == 200 else errors).append(_done_line(custom_id, status, answer))
            batch.counts["completed" if status == 200 else "failed"] += 1
        self._end(batch, output, errors)

    def _end(self, batch: _Batch, output: list[bytes], errors: list[bytes]) -> None:
        if output:
            made = self._keep(f"{batch.id}_output.jsonl", "batch_output", b"".join(output))
            batch.output_file_id = made.id
        if errors:
            made = self._keep(f"{batch.id}_error.jsonl", "batch_output", b"".join(errors))
            batch.error_file_id = made.id
        if batch.status == "cancelling":
            batch.status = "cancelled"
        else:
            short = self.most is not None and batch.counts["total"] > self.most
            batch.status = "expired" if short else "completed"

    def _cancel(self, batch_id: str) -> _Batch:
        batch = self._batch(batch_id)
        if batch.status not in ("validating", "in_progress", "cancelling"):
            raise BadCallError(409, f"a batch that is {batch.status} cannot be cancelled")
        batch.status = "cancelling"
        return batch

    def _page(self, kind: str, scope: Scope) -> dict[str, Any]:
        """Return the list of files or batches, newest first."""
        query = parse_qs(scope.get("query_string", b"").decode())
        shown = [file.document() for file in self.files.values()]
        if kind == "batches":
            shown = [batch.document() for batch in self.batches.values()]
        shown.reverse()
        if kind == "files" and "purpose" in query:
            shown = [
                shown_value
                for shown_value in shown
                if shown_value["purpose"] == query["purpose"][0]
            ]
        ids = [shown_value["id"] for shown_value in shown]
        after = query.get("after", [""])[0]
        rest = shown[ids.index(after) + 1 :] if after in ids else shown
        limit = int(query.get("limit", [str(LISTED)])[0])
        return {"object": "list", "data": rest[:limit], "has_more": len(rest) > limit}

    def _file(self, file_id: str) -> _File:
        if file_id not in self.files:
            raise BadCallError(404, f"No such File object: {file_id}")
        return self.files[file_id]

    def _batch(self, batch_id: str) -> _Batch:
        if batch_id not in self.batches:
            raise BadCallError(404, f"No batch found with id '{batch_id}'.")
        return self.batches[batch_id]

    def _id(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{time.time_ns():x}{self._number:04x}"


def _done_line(custom_id: str, status: int, answer: bytes) -> bytes:
    response = {"status_code": status, "request_id": custom_id, "body": msgspec.Raw(answer)}
    return _line(custom_id, response, None)


def _undone_line(custom_id: str, code: str) -> bytes:
    return _line(custom_id, None, {"code": code, "message": "This request was not executed."})


def _line(custom_id: str, response: Any, error: Any) -> bytes:
    found = {"id": f"r-{custom_id}", "custom_id": custom_id, "response": response, "error": error}
    return msgspec.json.encode(found) + b"\n"
