"""Streaming clients that cost little, and what they saw: times, tokens, who answered."""

import asyncio
import json
import random
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gpumodel

JITTER = 0.2  # outputs are this much longer or shorter, so that streams do not march in step


@dataclass(frozen=True)
class Shape:
    """Tokens of a prompt, and mean tokens of an answer."""

    prompt: int
    output: int


@dataclass(frozen=True)
class Answer:
    status: int
    backend: str
    wanted: int
    tokens: int
    prompt_tokens: int
    sent_s: float
    first_s: float
    end_s: float

    @property
    def ok(self) -> bool:
        return self.status == 200 and self.tokens == self.wanted

    @property
    def own(self) -> bool:
        return self.backend.startswith("pool:")

    @property
    def ttft_s(self) -> float:
        return self.first_s - self.sent_s

    @property
    def tpot_s(self) -> float:
        return (self.end_s - self.first_s) / max(self.tokens - 1, 1)

    def within(self, start_s: float, end_s: float) -> float:
        """Its output tokens in a window: they come at an even pace."""
        shared = min(self.end_s, end_s) - max(self.first_s, start_s)
        return self.tokens * max(0.0, shared) / max(self.end_s - self.first_s, 1e-9)


class Clients:
    """Of one address; `chat` asks for chat completions, else for plain ones.

    `each`: usage is asked for with every chunk, as the gateway asks its engines.
    """

    def __init__(
        self, base_url: str, model: str, key: str = "none", *, chat: bool = False,
        each: bool = False,
    ) -> None:  # fmt: skip
        found = re.fullmatch(r"http://([^:/]+):(\d+)/v1", base_url)
        assert found is not None, base_url
        self._host, self._port = found[1], int(found[2])
        self._model, self._key, self._chat = model, key, chat
        self._usage = {"include_usage": True} | ({"continuous_usage_stats": True} if each else {})

    async def ask(self, prompt: str, tokens: int, *, stream: bool = True) -> Answer:
        body: dict[str, Any] = {"model": self._model, "max_tokens": tokens, "ignore_eos": True}
        body |= (
            {"messages": [{"role": "user", "content": prompt}]}
            if self._chat
            else {"prompt": prompt}
        )
        if stream:
            body |= {"stream": True, "stream_options": self._usage}
        text = json.dumps(body).encode()
        path = "/v1/chat/completions" if self._chat else "/v1/completions"
        head = (
            f"POST {path} HTTP/1.1\r\nhost: {self._host}\r\nconnection: close\r\n"
            f"authorization: Bearer {self._key}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(text)}\r\n\r\n"
        )
        sent_s = time.monotonic()
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(head.encode() + text)
            return await _read(reader, tokens, sent_s)
        finally:
            writer.close()

    async def closed_loop(
        self, clients: int, seconds: float, shape: Shape, *, spread_s: float, seed: int = 7
    ) -> list[Answer]:
        """Each asks again at once until the time is up; they begin within `spread_s`."""
        rng = random.Random(seed)
        end_s = time.monotonic() + seconds
        answers: list[Answer] = []

        async def one(place: int) -> None:
            await asyncio.sleep(spread_s * place / clients)
            while time.monotonic() < end_s:
                tokens = round(shape.output * rng.uniform(1 - JITTER, 1 + JITTER))
                answers.append(await self.ask(gpumodel.prompt(shape.prompt), tokens))

        await asyncio.gather(*(one(place) for place in range(clients)))
        return answers

    async def each(self, asked: Iterator[tuple[str, int, bool]], clients: int) -> list[Answer]:
        """All of (prompt, tokens, stream), so many at a time."""
        answers: list[Answer] = []

        async def one() -> None:
            for prompt, tokens, stream in asked:
                answers.append(await self.ask(prompt, tokens, stream=stream))

        await asyncio.gather(*(one() for _ in range(clients)))
        return answers


def figures(answers: list[Answer], start_s: float, end_s: float) -> dict[str, float]:
    """Rates of the window, latencies of the answers that began in it."""
    whole = [
        answer
        for answer in answers
        if answer.ok and answer.first_s >= start_s and answer.sent_s < end_s
    ]
    found = {
        "answers": len(answers),
        "failed": sum(not answer.ok for answer in answers),
        "output_tokens_per_s": sum(answer.within(start_s, end_s) for answer in answers)
        / (end_s - start_s),
        "at_once": sum(
            max(0.0, min(answer.end_s, end_s) - max(answer.sent_s, start_s)) for answer in answers
        )
        / (end_s - start_s),
    }
    if whole:
        tpot = sorted(part.tpot_s for part in whole)
        ttft = sorted(part.ttft_s for part in whole)
        found |= {
            "tpot_ms_p50": 1e3 * statistics.median(tpot),
            "tpot_ms_p95": 1e3 * tpot[int(0.95 * len(tpot))],
            "ttft_ms_p50": 1e3 * statistics.median(ttft),
            "ttft_ms_p99": 1e3 * ttft[int(0.99 * len(ttft))],
            "ttft_ms_max": 1e3 * ttft[-1],
        }
    return {name: round(value, 3) for name, value in found.items()}


async def _read(reader: asyncio.StreamReader, wanted: int, sent_s: float) -> Answer:
    """Only the head and the tail are looked into."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first_s, tail = 0.0, b""
    while chunk := await reader.read(65536):
        if not first_s and b"{" in chunk:
            first_s = time.monotonic()
        tail = (tail + chunk)[-4096:]
    end_s = time.monotonic()
    backend = re.search(r"^x-breakeven-backend: (.*?)\r", head, re.MULTILINE | re.IGNORECASE)
    return Answer(
        status=int(head.split()[1]),
        backend=backend[1] if backend else "",
        wanted=wanted,
        tokens=_last(tail, b"completion_tokens"),
        prompt_tokens=_last(tail, b"prompt_tokens"),
        sent_s=sent_s,
        first_s=first_s or end_s,
        end_s=end_s,
    )


def _last(tail: bytes, name: bytes) -> int:
    found = re.findall(rb'"%s":\s*(\d+)' % name, tail)
    return int(found[-1]) if found else 0
