"""A provider that is played by scripts, and keeps an account of what it bills for each request.

A script gets a `ProviderCall`: it writes what it likes, and says what it bills. Names of
providers are the first part of the path, so that one server stands for several.
"""

import asyncio
import contextlib
import json
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

INPUT_PUSD, OUTPUT_PUSD, SEARCH_PUSD = 1_000_000, 10_000_000, 10**10
HEAD = "HTTP/1.1 {status} Said\r\ncontent-type: {media}\r\nconnection: close\r\n{more}\r\n"
EVENTS = "text/event-stream"
PROMPT = 10


@dataclass(slots=True)
class Bill:
    """What a request is charged for."""

    input: int = 0
    output: int = 0
    searches: int = 0
    other_pusd: int = 0  # of kinds without tokens

    @property
    def pusd(self) -> int:
        tokens = self.input * INPUT_PUSD + self.output * OUTPUT_PUSD
        return tokens + self.searches * SEARCH_PUSD + self.other_pusd


class ProviderCall:
    """One request: its body, what is written back, and its bill. `gone`: its caller left."""

    def __init__(self, path: str, headers: dict[str, str], body: Any, writer: Any) -> None:
        self.path, self.headers, self.body = path, headers, body
        self.bill = Bill()
        self.gone, self.over = asyncio.Event(), threading.Event()
        self.wrote = threading.Event()
        self._writer = writer

    @property
    def id(self) -> str:
        return self.headers.get("x-request-id", "")

    def send(self, data: str | bytes) -> None:
        self._writer.write(data.encode() if isinstance(data, str) else data)

    def head(self, status: int = 200, media: str = EVENTS, **more: str) -> None:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
        self.send(HEAD.format(status=status, media=media, more=lines))

    def answer(self, document: Any, status: int = 200, **more: str) -> None:
        body = json.dumps(document)
        self.head(status, "application/json", content_length=str(len(body)), **more)
        self.send(body)

    def event(self, document: Any) -> None:
        name = f"event: {document['type']}\n" if "type" in document else ""
        self.send(f"{name}data: {json.dumps(document)}\n\n")

    def chunk(self, **delta: Any) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        self.event(chunk_of(choices=[choice]))

    async def words(self, count: int, pause_s: float = 0.0, *, stops: bool = False) -> None:
        """Write `count` words, each a billed token; `stops`: none once the caller has left."""
        for _ in range(count):
            if stops and self.gone.is_set():
                return
            self.bill.output += 1
            self.chunk(content="word ")
            await asyncio.sleep(pause_s)
            self.wrote.set()

    def end(self) -> None:
        """Tell the finish and the usage of all that is billed."""
        self.event(chunk_of(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]))
        self.event(chunk_of(choices=[], usage=self.usage()))
        self.send("data: [DONE]\n\n")

    def usage(self) -> dict[str, int]:
        bill = self.bill
        return {
            "prompt_tokens": bill.input, "completion_tokens": bill.output,
            "total_tokens": bill.input + bill.output,
        }  # fmt: skip

    def completion(self, words: int) -> dict[str, Any]:
        """Return a whole answer of so many words."""
        message = {"role": "assistant", "content": "word " * words}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {
            "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], "usage": self.usage(),
        }  # fmt: skip

    async def drop(self) -> None:
        """Break the connection off."""
        await self._writer.drain()
        self._writer.transport.abort()


def chunk_of(**members: Any) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", **members}


Script = Callable[[ProviderCall], Awaitable[None]]


async def honest(call: ProviderCall) -> None:
    """Answer with as many words as are asked for, at most 20."""
    call.bill.input = PROMPT
    count = min(20, call.body.get("max_tokens") or call.body.get("max_completion_tokens") or 20)
    if call.body.get("stream"):
        call.head()
        await call.words(count)
        call.end()
        return
    call.bill.output = count
    call.answer(call.completion(count))


@dataclass
class BillingProvider:
    """`plays[name]` are the scripts of a provider's next requests; then `honest` answers."""

    port: int = 0
    plays: dict[str, list[Script]] = field(default_factory=lambda: defaultdict(list))
    calls: list[ProviderCall] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self.loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=256)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _end(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()
            return
        first, *lines = head.decode().split("\r\n")[:-2]
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        body = json.loads(data) if data[:1] == b"{" else {"form": data}
        call = ProviderCall(first.split(" ")[1], headers, body, writer)
        self.calls.append(call)
        watch = asyncio.create_task(_watch(reader, call))
        waiting = self.plays["any"] or self.plays[call.path.split("/")[1]]
        try:
            await (waiting.pop(0) if waiting else honest)(call)
            await writer.drain()
        except OSError:
            return
        finally:
            watch.cancel()
            call.over.set()
            writer.close()


async def _watch(reader: asyncio.StreamReader, call: ProviderCall) -> None:
    with contextlib.suppress(OSError):
        await reader.read(1)
    call.gone.set()
