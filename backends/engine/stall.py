"""Detection of an engine that has stopped working although its port answers.

vLLM's `/health` reports whether its core has died, and not whether it makes progress: with a
hanging GPU kernel or a core that waits forever it stays at 200. So if requests wait and no counter
of the engine changes, one token is requested. The engine has stalled if it does not answer and its
counters are still unchanged. Counters change while it works, even during a prompt that takes
minutes (its KV cache fills), so that no busy engine is probed.
"""

import asyncio
from collections.abc import Callable

import httpx

from backends.engine.flags import EngineLaunch
from backends.engine.warmup import WarmUpFailed, warm_up
from backends.enginesample import ProbeFailed
from backends.otherengines import METRICS_PATH
from backends.vllm_metrics import read_vllm

LOOKS = 12  # polls within the limit
_METRICS_S = 10.0

Signs = tuple[float | None, ...]


async def stalled(
    client: httpx.AsyncClient,
    base_url: str,
    launch: EngineLaunch,
    waits: Callable[[], bool],
    limit_s: float,
) -> str:
    """Wait until the engine has stalled. Return the reason.

    `limit_s` is half for counters without a change and half for the answer to the probe. `waits`
    returns whether requests wait for this engine.
    """
    loop = asyncio.get_running_loop()
    seen: Signs | None = None
    since_s = loop.time()
    while True:
        await asyncio.sleep(limit_s / LOOKS)
        signs = await _signs(client, base_url) if waits() else None
        if signs is None or signs != seen:
            seen, since_s = signs, loop.time()
        elif loop.time() - since_s >= limit_s / 2:
            answered = await _answers(client, base_url, launch, limit_s / 2)
            if not answered and await _signs(client, base_url) == seen:
                return f"requests wait, and it has done nothing for {loop.time() - since_s:.0f} s"
            seen = None


async def _signs(client: httpx.AsyncClient, base_url: str) -> Signs | None:
    """Return counters that change while an engine works; `None` if they cannot be read."""
    try:
        url = base_url.removesuffix("/v1") + METRICS_PATH
        page = await client.get(url, timeout=_METRICS_S)
        found = read_vllm(page.text)  # own engines are vLLM
    except (httpx.HTTPError, ProbeFailed, OverflowError, ValueError):
        return None
    return (
        found.running, found.waiting, found.kv_usage_ratio, found.preemptions_total,
        found.prompt_tokens_total, found.generation_tokens_total,
    )  # fmt: skip


async def _answers(
    client: httpx.AsyncClient, base_url: str, launch: EngineLaunch, limit_s: float
) -> bool:
    """Return whether the engine responds to a request for one token. An error response counts."""
    try:
        async with asyncio.timeout(limit_s):
            await warm_up(client, base_url, launch.served_name, launch.kind)
    except TimeoutError:
        return False
    except WarmUpFailed:
        return True
    return True
