"""Client of a benchmark: sends requests and times their streams at low CPU cost.

It uses the request path's own HTTP client (llhttp), which takes 19 us of CPU time for an event.
httpx takes 84 to 113 us: a whole core at 10,000 tokens per second, so that the client's own backlog
would be measured. Only the events up to the first token and the last event are decoded; of the
others only the arrival time is kept.
"""

import asyncio
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from backends.base import Call, Deadlines
from backends.engine.benchfigures import RequestSample
from backends.engine.benchload import BenchPrompts, BenchRequest, LoadProfile, random_words
from backends.errors import BackendError
from backends.openai import OpenAIBackend

CALIBRATION_WORDS = ((40, 240), (8, 48))  # the second pair is for short contexts
_TAIL_BYTES = 8192
_HEAD_BYTES, _TOKEN_BYTES = 2**20, 2**14  # limit of a stream; an event has about 300 bytes
_MOST_TOKENS = 10**9
_COUNTS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class BenchTarget:
    """Target of a benchmark and its API: chat completions, or plain completions if not `chat`."""

    model: str
    chat: bool = True
    ignore_eos: bool = True
    timeout_s: float = 600.0


class BenchClient:
    """Benchmark client of one engine or API. Times are monotonic seconds."""

    def __init__(self, backend: OpenAIBackend, target: BenchTarget) -> None:
        self._backend = backend
        self._target = target

    async def calibrate(self, shared: int, rng: random.Random) -> BenchPrompts:
        """Measure the tokens per word with two prompts, which also warm up the engine.

        Raises `BackendError` when the target fails or reports no usage.
        """
        usual, shorter = CALIBRATION_WORDS
        short = await self._counted(usual[0], rng)
        try:
            return BenchPrompts.measured(shared, rng, short, await self._counted(usual[1], rng))
        except BackendError:
            pair = [await self._counted(count, rng) for count in shorter]
            return BenchPrompts.measured(shared, rng, *pair)

    async def _counted(self, count: int, rng: random.Random) -> tuple[int, int]:
        """Send a prompt of `count` random words. Return the word count and its token count."""
        sample = await self.send_request(random_words(count, rng), 4, began=time.monotonic())
        if sample.error is not None:
            raise BackendError(sample.error)
        if not sample.input_tokens:
            raise BackendError("the stream's usage has no prompt tokens")
        return count, sample.input_tokens

    async def run(
        self,
        loop: LoadProfile,
        prompts: BenchPrompts,
        done: Callable[[RequestSample], None] = lambda _: None,
    ) -> list[RequestSample]:
        """Send every request of a load profile. Return their samples in the order of sending."""
        began = time.monotonic()
        if loop.at_once:
            found = await self._run_closed(loop, prompts, began, done)
        else:
            found = await self._run_open(loop, prompts, began, done)
        return sorted(found, key=lambda sample: sample.start_s)

    async def _run_closed(
        self,
        loop: LoadProfile,
        prompts: BenchPrompts,
        began: float,
        done: Callable[[RequestSample], None],
    ) -> list[RequestSample]:
        asks, found = iter(loop.asks), list[RequestSample]()
        streams = loop.at_once or 1

        async def run_stream(place: int) -> None:
            await asyncio.sleep(loop.spread_s * place / streams)
            for ask in asks:
                found.append(
                    await self.send_request(prompts.text(ask.prompt), ask.output, began=began)
                )
                done(found[-1])

        async with asyncio.TaskGroup() as group:
            for place in range(streams):
                group.create_task(run_stream(place))
        return found

    async def _run_open(
        self,
        loop: LoadProfile,
        prompts: BenchPrompts,
        began: float,
        done: Callable[[RequestSample], None],
    ) -> list[RequestSample]:
        found: list[RequestSample] = []

        async def send_one(ask: BenchRequest, text: str) -> None:
            found.append(await self.send_request(text, ask.output, began=began))
            done(found[-1])

        async with asyncio.TaskGroup() as group:
            for ask in loop.asks:
                text = prompts.text(ask.prompt)  # made before the send time, which it would delay
                await asyncio.sleep(began + ask.at_s - time.monotonic())
                group.create_task(send_one(ask, text))
        return found

    async def send_request(self, prompt: str, tokens: int, *, began: float) -> RequestSample:
        """Send one streamed request. Return its sample; a failed request has `error` set.

        `began` is the monotonic time at which the run started.
        """
        call = self._call(prompt, tokens)
        reader = _Reader(_HEAD_BYTES + tokens * _TOKEN_BYTES)
        sent = time.monotonic()
        error: str | None = None
        try:
            exchange = await self._backend.open(call)
            try:
                whole = await exchange.pour(reader.read)
            finally:
                await exchange.aclose()
            if not whole:
                error = f"its stream is longer than {tokens} tokens can be; it was given up"
            elif exchange.status != 200:
                error = f"status {exchange.status}: {reader.tail[-300:].decode('utf-8', 'replace')}"
        except BackendError as failure:
            error = f"{type(failure).__name__}: {failure}"
        usage = reader.usage()
        error = error or reader.fault() or _nonsense(usage)
        first = reader.first_s or time.monotonic()
        if error is None and not reader.first_s:
            error = "no token came"
        if error is None and not usage:  # an engine that dies also closes its stream
            error = "the stream carried no usage: it was cut short, or tokens cannot be counted"
        return RequestSample(
            start_s=sent - began,
            input_tokens=_count(usage.get("prompt_tokens")) or 0,
            output_tokens=_count(usage.get("completion_tokens")) or reader.events,
            ttft_s=first - sent,
            e2e_s=(reader.last_s or first) - sent,
            gaps_s=tuple(reader.gaps_s),
            cached_tokens=_cached_tokens(usage.get("prompt_tokens_details")),
            error=error,
        )

    def _call(self, prompt: str, tokens: int) -> Call:
        target = self._target
        body: dict[str, Any] = {"model": target.model, "max_tokens": tokens, "temperature": 0}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        if target.ignore_eos:
            body["ignore_eos"] = True
        if target.chat:
            body["messages"] = [{"role": "user", "content": prompt}]
        else:
            body["prompt"] = prompt
        deadlines = Deadlines(10.0, target.timeout_s, target.timeout_s)
        path = "/chat/completions" if target.chat else "/completions"
        return Call(path=path, body=json.dumps(body).encode(), deadlines=deadlines, stream=True)


class _Reader:
    """Reader of a stream's pieces: time of the first token, and the gaps after it."""

    def __init__(self, limit_bytes: int) -> None:
        self._left_bytes = limit_bytes
        self.first_s = 0.0
        self.last_s = 0.0
        self.events = 0
        self.gaps_s: list[float] = []
        self.tail = b""

    def read(self, piece: bytes) -> bool:
        now = time.monotonic()
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            return False
        before, self.tail = self.tail, (self.tail + piece)[-_TAIL_BYTES:]
        if not self.first_s:
            if any(_has_token(line) for line in (before + piece).split(b"\n")):
                self.first_s = self.last_s = now
                self.events = 1
            return True
        # The usage and the last event carry no token.
        count = piece.count(b'"finish_reason"')
        if count:
            self.gaps_s.append(now - self.last_s)
            self.gaps_s.extend([0.0] * (count - 1))
            self.events += count
            self.last_s = now
        return True

    def usage(self) -> dict[str, Any]:
        for line in reversed(self.tail.split(b"\n")):
            if b'"usage"' in line and (document := _decode_event(line)):
                found = document.get("usage")
                if isinstance(found, dict):
                    return found
        return {}

    def fault(self) -> str | None:
        """Return the error that ended the stream, or `None`. The HTTP status was sent before it."""
        for line in reversed(self.tail.split(b"\n")):
            if b'"error"' in line and (said := (_decode_event(line) or {}).get("error")):
                words = said.get("message") if isinstance(said, dict) else said
                return f"its stream ends with an error: {words!s:.300}"
        return None


def _nonsense(usage: dict[str, Any]) -> str | None:
    """Return an error if a usage count is not a plausible number of tokens, else `None`.

    Wrong counts would become tokens per second and costs that were never measured.
    """
    for name in _COUNTS:
        value = usage.get(name)
        if value is not None and _count(value) is None:
            return f"its usage is not a count: {name} is {value!r:.40}"
    return None


def _count(value: Any) -> int | None:
    counted = isinstance(value, int) and not isinstance(value, bool)
    return value if counted and 0 <= value <= _MOST_TOKENS else None


def _cached_tokens(details: Any) -> int:
    return (_count(details.get("cached_tokens")) or 0) if isinstance(details, dict) else 0


def _has_token(line: bytes) -> bool:
    document = _decode_event(line)
    choices = (document or {}).get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        if choice.get("text") or delta.get("content") or delta.get("reasoning_content"):
            return True
        if delta.get("tool_calls") or choice.get("finish_reason"):
            return True
    return False


def _decode_event(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"data: {"):
        return None
    try:
        found: dict[str, Any] = json.loads(line[6:])
    except (ValueError, RecursionError):
        return None
    return found
