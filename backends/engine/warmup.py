"""Is an engine ready? Only a real answer says so.

The warm-up asks for one token with its log-probability, because the first such request is the one
that allocates and compiles.
"""

from typing import Any

import httpx

from backends.engine.tasks import TASKS, TaskName

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


async def warm_up(client: httpx.AsyncClient, base_url: str, model: str, kind: TaskName) -> None:
    """One request of the kind that the model serves."""
    task = TASKS[kind]
    path, told = task.path, task.told
    try:
        answer = await client.post(base_url + path, timeout=_REQUEST_TIMEOUT_S, **task.ready(model))
        document: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise WarmUpFailed(f"{path}: {type(error).__name__} {error}") from error
    if answer.status_code != 200 or document.get(told) in (None, []):
        raise WarmUpFailed(f"{path}: {answer.status_code} {answer.text[:300]}")
