"""Probe streams that measure an engine: random prompts of known length, timed by token."""

import json
import random
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from backends.enginesample import EngineSample, ProbeFailed

_TIMEOUT_S = 30.0
_NONSENSE = (ValueError, LookupError, TypeError, AttributeError)  # JSON of another shape
LEAST_CHUNKS = 0.8  # of an answer's tokens; some tokens are parts of a character
_WORDS = [
    "load",
    "queue",
    "token",
    "cache",
    "model",
    "price",
    "stream",
    "answer",
    "router",
    "engine",
    "batch",
    "prompt",
    "latency",
    "budget",
    "hour",
    "machine",
    "volume",
    "ledger",
    "team",
    "request",
]


class ProbeError(Exception):
    """An engine refused a probe, or its response cannot be timed."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Model to probe at an engine. `read_page` parses the metrics page of this kind of engine."""

    base_url: str
    model: str
    read_page: Callable[[str], EngineSample]


@dataclass(frozen=True, slots=True)
class TokenMark:
    """Number of tokens that had arrived at a monotonic time.

    There is one mark for each read from the socket: tokens of one read have no times of their own.
    """

    at_s: float
    tokens: int


@dataclass(frozen=True, slots=True)
class ProbeStream:
    prompt_tokens: int
    marks: tuple[TokenMark, ...]
    sent_at_s: float

    @property
    def ttft_s(self) -> float:
        return self.marks[0].at_s - self.sent_at_s

    def tokens_at(self, at_s: float) -> int:
        place = bisect_right(self.marks, at_s, key=lambda mark: mark.at_s)
        return self.marks[place - 1].tokens if place else 0


@dataclass(slots=True)
class ProbeCost:
    """Number of requests and tokens that a measurement has sent to an engine."""

    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0

    def add(self, stream: ProbeStream) -> ProbeStream:
        self.requests += 1
        self.prompt_tokens += stream.prompt_tokens
        self.output_tokens += stream.marks[-1].tokens
        return stream


async def context_limit(client: httpx.AsyncClient, workload: Workload) -> int | None:
    """Return the engine's context length in tokens, or `None` if it does not report one.

    Uses the model's own entry, or else the first: an engine that accepts any name may list its
    model under another. Raises `ProbeError` when the list cannot be read.
    """
    try:
        answer = await client.get(f"{workload.base_url}/models", timeout=_TIMEOUT_S)
        cards = answer.json()["data"]
        named = [card for card in cards if card.get("id") == workload.model]
        found = [card["max_model_len"] for card in named or cards if card.get("max_model_len")]
        return int(found[0]) if found else None
    except (httpx.HTTPError, *_NONSENSE) as error:
        raise ProbeError(f"/models: {type(error).__name__} {error}") from error


async def free_kv_tokens(client: httpx.AsyncClient, workload: Workload) -> int:
    """Return the free KV cache in tokens, or 0 if it is unknown or other requests run."""
    try:
        answer = await client.get(
            f"{workload.base_url.removesuffix('/v1')}/metrics", timeout=_TIMEOUT_S
        )
        answer.raise_for_status()
        sample = workload.read_page(answer.text)
    except (httpx.HTTPError, ProbeFailed):
        return 0
    if sample.running or sample.waiting:
        return 0
    return sample.kv_free_tokens or 0


async def measure(
    client: httpx.AsyncClient, workload: Workload, *, prompt_words: int, output_tokens: int
) -> ProbeStream:
    """Send one completion of exactly `output_tokens`. Return the arrival times of its tokens.

    Usage is requested in every chunk. An engine that reports usage only at the end is timed by
    chunks of about one token each. Raises `ProbeError` when the stream fails or cannot be timed.
    """
    body = {
        "model": workload.model,
        "prompt": " ".join(random.choices(_WORDS, k=prompt_words)),  # noqa: S311  (not a secret)
        "max_tokens": output_tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    url = f"{workload.base_url}/completions"
    sent_at_s = time.monotonic()
    marks: list[TokenMark] = []
    pieces: list[TokenMark] = []
    prompt_tokens = told = written = 0
    try:
        async with client.stream("POST", url, json=body, timeout=_TIMEOUT_S) as answer:
            if answer.status_code != 200:
                text = (await answer.aread())[:300].decode("utf-8", "replace")
                raise ProbeError(f"/completions: {answer.status_code} {text}")
            rest = b""
            async for block in answer.aiter_bytes():
                *lines, rest = (rest + block).split(b"\n")
                chunks = [chunk for line in lines if (chunk := _chunk(line)) is not None]
                texts = sum(_has_text(chunk) for chunk in chunks)
                usages = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
                if texts:
                    written += texts
                    pieces.append(TokenMark(time.monotonic(), written))
                if not usages:
                    continue
                told += len(usages)
                prompt_tokens = int(usages[-1]["prompt_tokens"])
                tokens = int(usages[-1].get("completion_tokens") or 0)
                if tokens > (marks[-1].tokens if marks else 0):
                    marks.append(TokenMark(time.monotonic(), tokens))
    except (httpx.HTTPError, *_NONSENSE) as error:
        raise ProbeError(f"/completions: {type(error).__name__} {error}") from error
    if not marks:
        raise ProbeError("the stream has no usage, so tokens cannot be timed")
    if told == 1 and marks[0].tokens > 1:
        marks = _by_chunks(pieces, marks[0].tokens)
    return ProbeStream(prompt_tokens, tuple(marks), sent_at_s)


def _by_chunks(pieces: list[TokenMark], tokens: int) -> list[TokenMark]:
    written = pieces[-1].tokens if pieces else 0
    if not LEAST_CHUNKS * tokens <= written <= tokens:
        raise ProbeError(
            f"its usage comes only at the end, and {tokens} tokens came in {written} chunks: "
            "it cannot be timed by token"
        )
    return [TokenMark(piece.at_s, round(piece.tokens * tokens / written)) for piece in pieces]


def _chunk(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"data: {"):
        return None
    found: dict[str, Any] = json.loads(line[6:])
    return found


def _has_text(chunk: dict[str, Any]) -> bool:
    choices = chunk.get("choices")
    return bool(choices and choices[0].get("text"))
