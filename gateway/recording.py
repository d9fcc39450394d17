"""Whether requests can be recorded: a journal that takes no new work is told, not only obeyed.

Every request is refused then. A worker says so in its log, and the parent, which asks a worker
like a balancer does, in what `serve` prints: once per change, for requests come by the thousand.
"""

import asyncio
import logging
from collections.abc import Callable

import httpx

from ledger.journal import JournalWriter

ASKED_S = 2.0
JOURNAL = "journal"

log = logging.getLogger("breakeven.recording")


class Recording:
    """One worker's journal, watched."""

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._refused = False

    def look(self) -> bool:
        """Whether new work is taken; a change is logged."""
        reason = self._journal.refusal()
        refused = reason is not None
        if refused and not self._refused:
            log.error("every request gets 503: the journal takes no new work: %s", reason)
        elif self._refused and not refused:
            log.warning("the journal takes new work again")
        self._refused = refused
        return not refused


async def follow(address: tuple[str, int], say: Callable[[str], None], logs: str) -> None:
    """Say what a worker misses for the journal's sake; run it until it is cancelled."""
    host, port = address
    refused = False
    url = f"http://{_reached(host)}:{port}/readyz"
    async with httpx.AsyncClient(trust_env=False, timeout=ASKED_S) as client:
        while True:
            await asyncio.sleep(ASKED_S)
            try:
                missing = (await client.get(url)).json().get("missing", [])
            except (httpx.HTTPError, ValueError):
                continue  # who does not answer is told of elsewhere
            if (JOURNAL in missing) is not refused:
                refused = not refused
                say(_told(logs) if refused else "requests are recorded and served again")


def _told(logs: str) -> str:
    return (
        "not ready: every request gets 503, because the journal takes no new work (is the disk "
        f"full?); it goes on by itself when there is room again; the reason is in {logs}"
    )


def _reached(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "") else host
