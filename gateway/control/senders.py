"""Senders of the telemetry process: budget alerts, events and scheduled reports.

A defect in one of them must not end the process, which watches the engines: the error is logged
with its traceback, and the sender restarts a minute later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sqlalchemy import Engine

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.budget_alerts import BudgetAlerter
from gateway.control.event_sender import EventSender
from gateway.control.report_sender import ReportSender

SENDERS = (BudgetAlerter, EventSender, ReportSender)
PAUSE_S = 60.0

log = logging.getLogger(__name__)


async def run_senders(settings: Settings, ledger: Engine, clock: Clock) -> None:
    """Run all senders until cancelled. Raises `ConfigError` if their settings are invalid."""
    senders = [sender(settings, ledger, clock) for sender in SENDERS]
    await asyncio.gather(*(keep_running(type(made).__name__, made.run) for made in senders))


async def keep_running(
    name: str, run: Callable[[], Awaitable[None]], *, pause_s: float = PAUSE_S
) -> None:
    """Run a coroutine function until it returns; after an error, restart it in `pause_s`."""
    while True:
        try:
            return await run()
        except Exception:
            log.exception("%s failed, restarting pause_s=%.0f", name, pause_s)
        await asyncio.sleep(pause_s)
