"""Is an engine ready? Only a real answer says so.

The warm-up asks for one token with its log-probability, because the first such request is the one
that allocates and compiles.
"""

from typing import Any

import httpx

from backends.engine import silence
from backends.engine.flags import Kind

_HEALTH_TIMEOUT_S = 5.0
_REQUEST_TIMEOUT_S = 300.0


class WarmUpFailed(Exception):
    """The engine answers on its port, but not to a request."""


async def answers_health(client: httpx.AsyncClient, base_url: str) -> bool:
    try:
        url = base_url.removesuffix("/v1") + "/health"
        answer = await client.get(url, timeout=_HEALTH_TIMEOUT_S)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


async def warm_up(client: httpx.AsyncClient, base_url: str, model: str, kind: Kind) -> None:
    """One request of the kind that the model serves."""
    path, told, asked = _question(kind, model)
    try:
        answer = await client.post(base_url + path, timeout=_REQUEST_TIMEOUT_S, **asked)
        document: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise WarmUpFailed(f"{path}: {type(error).__name__} {error}") from error
    if answer.status_code != 200 or document.get(told) in (None, []):
        raise WarmUpFailed(f"{path}: {answer.status_code} {answer.text[:300]}")


def _question(kind: Kind, model: str) -> tuple[str, str, dict[str, Any]]:
    """Path, the member that an answer has, and the request in httpx's words."""
    if kind == "embedding":
        return "/embeddings", "data", {"json": {"model": model, "input": "ready?"}}
    if kind == "rerank":
        body: dict[str, Any] = {"model": model, "query": "ready?", "documents": ["ready"]}
        return "/rerank", "results", {"json": body}
    if kind == "transcription":
        sound = ("silence.wav", silence.wav(1.0), "audio/wav")
        return "/audio/transcriptions", "text", {"data": {"model": model}, "files": {"file": sound}}
    body = {"model": model, "prompt": "ready?", "max_tokens": 1, "logprobs": 1}
    return "/completions", "choices", {"json": body}
