"""The provider of `bench_litellm_beside`: a model's name says what becomes of a request for it.

    python tests/bench/besideupstream.py PORT JOURNAL

`e500--backup` answers 500, whatever is behind the two dashes. The journal has a line for each
request: the model and the seconds since the server began. Usage is ten tokens in and five out.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from backends.simulator import asgi
from backends.simulator.running import bind, run

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
LATE_S, FLOW_S, PAUSE_S = 6.0, 4.5, 0.5
ERRORS = {
    "e400": (400, "invalid_request_error", None, "`temperature` is out of range"),
    "e401": (401, "authentication_error", "invalid_api_key", "Incorrect API key provided"),
    "e403": (403, "permission_error", None, "Your account may not use this"),
    "e404": (404, "invalid_request_error", "model_not_found", "The model does not exist"),
    "e429": (429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached"),
    "e500": (500, "server_error", None, "The server had an error"),
    "e503": (503, "server_error", None, "The server is overloaded"),
    "ctx": (400, "invalid_request_error", "context_length_exceeded",
            "This model's maximum context length is 100 tokens. Please reduce the messages."),
    "policy": (400, "invalid_request_error", "content_policy_violation",
               "Your request was rejected as a result of our safety system."),
}  # fmt: skip


class ScriptedProvider:
    """Answers chat completions by the name of the model."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._began_s = time.monotonic()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] != "POST":
            await _send_json(send, 200, {"object": "list", "data": []})
            return
        asked = json.loads(await asgi.read_body(receive))
        model = str(asked.get("model"))
        with self._journal.open("a") as out:
            out.write(json.dumps([model, round(time.monotonic() - self._began_s, 3)]) + "\n")
        behaviour = model.partition("--")[0]
        if behaviour in ERRORS:
            status, kind, code, words = ERRORS[behaviour]
            error = {"message": words, "type": kind, "code": code, "param": None}
            await _send_json(send, status, {"error": error})
            return
        if behaviour == "late":
            await asyncio.sleep(LATE_S)
        if asked.get("stream"):
            await _stream(send, model, behaviour, usage=bool(asked.get("stream_options")))
        else:
            await _send_json(send, 200, _whole(model))


def _whole(model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"by {model}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model,
        "choices": [choice], "usage": USAGE,
    }  # fmt: skip


async def _send_json(send: Any, status: int, document: Any) -> None:
    head = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": json.dumps(document).encode()})


async def _stream(send: Any, model: str, behaviour: str, *, usage: bool) -> None:
    head = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    pause_s = PAUSE_S if behaviour == "flow" else 0.0
    for number in range(int(FLOW_S / PAUSE_S)):
        await asyncio.sleep(pause_s)
        await _event(send, model, {"content": f"{number} "}, None)
        if behaviour == "cut" and number == 2:
            raise ConnectionError("cut")
    await _event(send, model, {}, "stop")
    if usage:
        last = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
        await _body(send, {**last, "choices": [], "usage": USAGE})
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _event(send: Any, model: str, delta: dict[str, str], reason: str | None) -> None:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    await _body(send, {**chunk, "choices": [choice]})


async def _body(send: Any, document: Any) -> None:
    piece = f"data: {json.dumps(document)}\n\n".encode()
    await send({"type": "http.response.body", "body": piece, "more_body": True})


if __name__ == "__main__":
    run([("provider", ScriptedProvider(Path(sys.argv[2])), bind("127.0.0.1", int(sys.argv[1])))])
