"""Wait until started processes answer over HTTP."""

import asyncio

import httpx

from backends.plain_http import make_plain_client
from gateway.config.settings import Settings

POLL_S = 0.1
ANSWER_LIMIT_S = 60.0


async def wait_until_answering(settings: Settings, address: tuple[str, int]) -> None:
    """Wait for the gateway and, if enabled, the dashboard. Raises `TimeoutError`."""
    host, port = address
    pages = [f"http://{host}:{port}/readyz"]
    if settings.dashboard.enabled:
        shown = settings.dashboard
        pages.append(f"http://{shown.host}:{shown.port}/_stcore/health")
    page = ""
    try:
        async with make_plain_client() as client, asyncio.timeout(ANSWER_LIMIT_S):
            for page in pages:
                while not await _answers(client, page):  # noqa: ASYNC110  (another process)
                    await asyncio.sleep(POLL_S)
    except TimeoutError:
        said = f"{page} did not answer within {ANSWER_LIMIT_S:.0f} s"
        raise TimeoutError(f"{said}: {settings.state / 'logs'} says why") from None


async def _answers(client: httpx.AsyncClient, page: str) -> bool:
    try:
        return (await client.get(page)).status_code == 200
    except httpx.HTTPError:
        return False
