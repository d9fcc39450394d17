"""Messages of `serve` while the journals of the workers reject new records."""

import json
from collections.abc import Callable
from typing import Any

from backends.address_policy import INSIDE
from backends.errors import BackendError
from backends.http import HttpClient
from backends.metrics import ProbeFailed
from gateway.clock import next_tick
from gateway.host.page_reader import PageReader
from gateway.worker.journal_gate import JOURNAL

ASKED_S = 2.0
STALLED = "journal "  # prefix of the reason for an unreadable journal


async def follow(address: tuple[str, int], say: Callable[[str], None], logs: str) -> None:
    """Report what a worker lacks because of its journal; run until cancelled."""
    host, port = address
    refused, stalled = False, None
    client = HttpClient()
    pages = PageReader(client, f"http://{_reachable_host(host)}:{port}", INSIDE, {})
    try:
        while True:
            await next_tick(ASKED_S)
            missing = await _missing(pages)
            if missing is None:
                continue  # silent workers are reported elsewhere
            if (JOURNAL in missing) is not refused:
                refused = not refused
                say(
                    _not_ready_text(logs)
                    if refused
                    else "ready: the journal accepts records and requests are served again"
                )
            why = next((word for word in missing if word.startswith(STALLED)), None)
            if why != stalled:
                stalled = why
                say("ready: all journals can be read again" if why is None else f"not ready: {why}")
    finally:
        await client.aclose()


async def _missing(pages: PageReader) -> list[str] | None:
    """Return what a worker reports as missing; `None` if it does not answer."""
    try:
        answer: Any = json.loads((await pages.read("/readyz")).text)
    except (BackendError, ProbeFailed, TimeoutError, ValueError):
        return None
    missing = answer.get("missing", []) if isinstance(answer, dict) else []
    return [word for word in missing if isinstance(word, str)]


def _not_ready_text(logs: str) -> str:
    return (
        "not ready: every request gets 503, because the journal rejects new records. Free space on "
        f"the disk: requests are then served again. The reason is in {logs}"
    )


def _reachable_host(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "") else host
