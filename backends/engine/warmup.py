"""Is an engine ready? Only a real answer says so.

The warm-up asks for one token with its log-probability, because the first such request is the one
that allocates and compiles.
"""

from typing import Any

import httpx

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
    if kind == "embedding":
        path = "/embeddings"
        body: dict[str, Any] = {"model": model, "input": "ready?"}
    else:
        path = "/completions"
        body = {"model": model, "prompt": "ready?", "max_tokens": 1, "logprobs": 1}
    try:
        answer = await client.post(base_url + path, json=body, timeout=_REQUEST_TIMEOUT_S)
        document: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise WarmUpFailed(f"{path}: {type(error).__name__} {error}") from error
    if answer.status_code != 200 or not (document.get("choices") or document.get("data")):
        raise WarmUpFailed(f"{path}: {answer.status_code} {answer.text[:300]}")
