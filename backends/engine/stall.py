"""Whether an engine has stopped working although its port answers.

vLLM's `/health` says whether its core has died, not whether it moves: a GPU that never gives a
kernel back, or a core that waits for ever, leaves it at 200 while nobody gets a token. So where
somebody waits for the engine and none of its figures changes, it is asked for one token; without
an answer, and with its figures still the same, it has stalled. Figures change while it works, also
through a prompt that takes minutes (its KV cache fills), so that no busy engine is ever asked.
"""

import asyncio
from collections.abc import Callable

import httpx

from backends.engine.flags import EngineLaunch
from backends.engine.warmup import WarmUpFailed, warm_up
from backends.enginesample import ProbeFailed
from backends.otherengines import METRICS_PATH
from backends.vllm_metrics import read_vllm

LOOKS = 12  # within the limit
_METRICS_S = 10.0

Signs = tuple[float | None, ...]


async def stalled(
    client: httpx.AsyncClient,
    base_url: str,
    launch: EngineLaunch,
    waits: Callable[[], bool],
    limit_s: float,
) -> str:
    """Ends only when it has; the reason. Half of the limit without a change, half for an answer."""
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
        found = read_vllm(page.text)  # what is started here is vLLM
    except (httpx.HTTPError, ProbeFailed, OverflowError, ValueError):
        return None
    return (
        found.running, found.waiting, found.kv_usage_ratio, found.preemptions_total,
        found.prompt_tokens_total, found.generation_tokens_total,
    )  # fmt: skip


async def _answers(
    client: httpx.AsyncClient, base_url: str, launch: EngineLaunch, limit_s: float
) -> bool:
    """Return whether anything comes of one token's request; a refusal is an answer, too."""
    try:
        async with asyncio.timeout(limit_s):
            await warm_up(client, base_url, launch.served_name, launch.kind)
    except TimeoutError:
        return False
    except WarmUpFailed:
        return True
    return True
