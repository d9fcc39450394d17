"""Readiness of an engine: it is ready when it has answered a real request.

The warm-up requests one token with its log-probability, because the first request of that kind
allocates and compiles.
"""

from typing import Any

import httpx

from backends.engine.tasks import TASKS, TaskName

_HEALTH_TIMEOUT_S = 5.0
_REQUEST_TIMEOUT_S = 300.0


class WarmUpFailed(Exception):
    """An engine's port answers, but a request failed."""


async def answers_health(client: httpx.AsyncClient, base_url: str) -> bool:
    try:
        url = base_url.removesuffix("/v1") + "/health"
        answer = await client.get(url, timeout=_HEALTH_TIMEOUT_S)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


async def warm_up(client: httpx.AsyncClient, base_url: str, model: str, kind: TaskName) -> None:
    """Send one request of the engine's task. Raises `WarmUpFailed` when it fails."""
    task = TASKS[kind]
    path, told = task.path, task.told
    try:
        answer = await client.post(base_url + path, timeout=_REQUEST_TIMEOUT_S, **task.ready(model))
        document: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise WarmUpFailed(f"{path}: {type(error).__name__} {error}") from error
    if answer.status_code != 200 or document.get(told) in (None, []):
        raise WarmUpFailed(f"{path}: {answer.status_code} {answer.text[:300]}")
