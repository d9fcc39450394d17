"""The chores of telemetry that tell others: alerts of budgets, events and scheduled reports.

A defect in one of them must not end the process, which knows whether engines are well: the chore
is logged with its traceback and begins again a minute later.
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
    """Tell until cancelled; raises ConfigError where a sender's settings cannot be used."""
    senders = [sender(settings, ledger, clock) for sender in SENDERS]
    await asyncio.gather(*(keep_running(type(made).__name__, made.run) for made in senders))


async def keep_running(
    name: str, run: Callable[[], Awaitable[None]], *, pause_s: float = PAUSE_S
) -> None:
    """Run a chore until it returns; one that fails begins again after `pause_s` seconds."""
    while True:
        try:
            return await run()
        except Exception:
            log.exception("%s failed, and begins again in %.0f s", name, pause_s)
        await asyncio.sleep(pause_s)
