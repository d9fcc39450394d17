"""A provider that answers from a script and records what it had made when its caller left.

Comment lines of a script are instructions: `: pause S` is silence of S seconds, `: thinks N S`
makes N hidden tokens in S seconds, `: headless` holds the head back until the first event.
Scripted seconds pass `PACE` times as fast.
"""

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from deploy.upstream_server import UpstreamServer

PACE = 4
TYPES = {".json": "application/json", ".sse": "text/event-stream", ".txt": "text/plain"}


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """Content of a file; `media_type` of an event stream makes it a script."""

    media_type: str
    content: bytes

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls(TYPES[path.suffix], path.read_bytes())

    def blocks(self) -> list[str]:
        return [block for block in self.content.decode().split("\n\n") if block.strip()]


class ScriptRun:
    """One request at the upstream. `made` counts output tokens: hidden ones and content events."""

    def __init__(self) -> None:
        self.made = 0
        self.begun = threading.Event()
        self.ended = threading.Event()


class ScriptedUpstream(UpstreamServer):
    """Serves `/CASE/...` in a thread of its own; `answers` names the file that answers a case."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, ScriptedAnswer] = {}
        self.runs: dict[str, list[ScriptRun]] = {}
        self.started = threading.Condition()

    def run_of(self, case: str, patience_s: float = 120.0) -> ScriptRun:
        """Wait for the first request of a case and return its run."""
        with self.started:
            assert self.started.wait_for(lambda: self.runs.get(case), patience_s), "never sent"
            return self.runs[case][0]

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        case, run = scope["path"].split("/")[1], ScriptRun()
        with self.started:
            self.runs.setdefault(case, []).append(run)
            self.started.notify_all()
        while (await receive()).get("more_body"):
            pass
        playing = asyncio.create_task(play_script(self.answers[case], run, send))
        leaving = asyncio.create_task(_wait_for_leave(receive))
        try:
            await asyncio.wait({playing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            playing.cancel()
            leaving.cancel()
            await asyncio.gather(playing, leaving, return_exceptions=True)
            run.ended.set()


async def play_script(answer: ScriptedAnswer, run: ScriptRun, send: Any) -> None:
    """Send an answer; an event stream piece by piece, anything else at once."""
    head = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", answer.media_type.encode())],
    }
    run.begun.set()
    if answer.media_type != TYPES[".sse"]:
        await send(head)
        await send({"type": "http.response.body", "body": answer.content})
        return
    blocks = answer.blocks()
    if blocks[0] != ": headless":
        await send(head)
        head = {}
        await _send_piece(send, b"")
    for block in blocks:
        if block.startswith(": "):
            await _obey(block.split()[1:], run)
            continue
        if head:
            await send(head)
            head = {}
        run.made += '"content"' in block
        await _send_piece(send, f"{block}\n\n".encode())
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_piece(send: Any, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _obey(words: Iterable[str], run: ScriptRun) -> None:
    match list(words):
        case ["pause", seconds]:
            await asyncio.sleep(float(seconds) / PACE)
        case ["thinks", tokens, seconds]:
            await _think(int(tokens), float(seconds) / PACE, run)
        case ["headless"]:
            pass
        case other:
            raise ValueError(f"unknown instruction {other}")


async def _think(tokens: int, seconds: float, run: ScriptRun) -> None:
    """Make hidden tokens evenly; what was made stays made when the caller leaves."""
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    try:
        await asyncio.sleep(seconds)
    finally:
        run.made += min(tokens, round(tokens * (loop.time() - begun_s) / seconds))


async def _wait_for_leave(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
