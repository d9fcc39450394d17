"""Providers that answer as they are told, and a list of who was asked for which model."""

import asyncio
import json
import time
from typing import Any

from deploy.upstream_server import UpstreamServer

USAGE = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}
TOO_LONG = {"message": "This prompt is too much.", "code": "context_length_exceeded"}
FILTERED = {"message": "The filter says no.", "code": "content_filter"}
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
    "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn",
    "usage": {"input_tokens": 20, "output_tokens": 2},
}  # fmt: skip
REFUSALS: dict[str, tuple[int, dict[str, Any]]] = {
    "500": (500, {"message": "broken"}),
    "429": (429, {"message": "slow down", "type": "rate_limit_error"}),
    "400": (400, {"message": "`temperature` is odd", "code": None}),
    "context": (400, TOO_LONG),
    "filter": (400, FILTERED),
    # As vendors say the same: in a 403, in a 413, in a 422; and a key of ours in a 400.
    "moderated": (403, {"message": "It requires moderation and your input was flagged"}),
    "large": (413, {"message": "Please reduce the length of the messages or completion."}),
    "unprocessed": (422, {"message": "`inputs` must have less than 4096 tokens. Given: 5000"}),
    "our_key": (400, {"message": "API key not valid. Please pass a valid API key.", "code": 400}),
}


class StageUpstream(UpstreamServer):
    """Serves `/NAME/v1/chat/completions` and Messages in a thread.

    `says` has the word of each model, or of all of a name's, for now.

    A word is one of `REFUSALS`, `ok`, `filtered` (an answer that its filter ended), or seconds of
    silence before an answer; `flows`: a stream that goes on for so many seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.says: dict[str, str | float] = {}
        self.flows_s = 0.0
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[dict[str, Any]] = []

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}/v1"

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        parts = []
        while (message := await receive()).get("type") == "http.request":
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        name, body = scope["path"].split("/")[1], json.loads(b"".join(parts) or b"{}")
        self.asked.append((name, body.get("model", "")))
        self.bodies.append(body)
        word = self.says.get(body.get("model", ""), self.says.get(name, "ok"))
        if isinstance(word, float):
            await _pause(word)
            word = "ok"
        if word in REFUSALS:
            status, error = REFUSALS[word]
            await _reply(send, status, json.dumps({"error": error}).encode())
        elif scope["path"].endswith("/messages"):
            await _reply(send, 200, json.dumps(MESSAGE).encode())
        elif body.get("stream"):
            await self._stream(send, filtered=word == "filtered")
        else:
            await _reply(send, 200, json.dumps(_answer(filtered=word == "filtered")).encode())

    async def _stream(self, send: Any, *, filtered: bool) -> None:
        await _start(send, 200, b"text/event-stream")
        await _event(send, {"role": "assistant", "content": ""})
        if not filtered:
            until_s = time.monotonic() + self.flows_s
            await _event(send, {"content": "hello"})
            while time.monotonic() < until_s:
                await _pause(0.05)
                await _event(send, {"content": " on"})
        await _event(send, {}, "content_filter" if filtered else "stop")
        told = {"choices": [], "usage": USAGE}
        await _part(send, b"data: " + json.dumps(told).encode() + b"\n\ndata: [DONE]\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _answer(*, filtered: bool) -> dict[str, Any]:
    message = {"role": "assistant", "content": "" if filtered else "hello"}
    finish = "content_filter" if filtered else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": USAGE}


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def _start(send: Any, status: int, media: bytes) -> None:
    headers = [(b"content-type", media)]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _part(send: Any, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _event(send: Any, delta: dict[str, Any], finish: str | None = None) -> None:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    await _part(send, b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")


async def _reply(send: Any, status: int, body: bytes) -> None:
    await _start(send, status, b"application/json")
    await send({"type": "http.response.body", "body": body})
