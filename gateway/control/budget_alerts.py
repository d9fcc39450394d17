"""Budget alerts: written to the log, and sent to a webhook and by mail if configured.

The webhook message is JSON with a `text` that chat services can display. A failed delivery
(`signed_webhook`) is repeated after half a minute, then at growing intervals for two days. A
channel that received an alert does not get it again from the same host when another one failed.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.clock import Clock, next_tick
from gateway.config.credentials import webhook
from gateway.config.settings import Settings
from gateway.control.mail import NotTaken, PartlyTaken, send_mail
from gateway.control.signed_webhook import SignedWebhook, webhook_client
from ledger.budgets.alerts import (
    Alert,
    claim_due,
    highest_reached,
    mark_delivered,
    record_alerts,
)
from ledger.budgets.entered import entered_thresholds
from ledger.budgets.escrow import budget_key
from ledger.budgets.scopes import valued_tag
from ledger.commit_watch import CommitWatch, work_after_commit
from ledger.database import reading
from ledger.money import PPM, pusd_to_usd, usd_text

LOOK_S = 2.0

log = logging.getLogger("breakeven.alerts")

if TYPE_CHECKING:  # imported where a budget is watched
    import httpx


class BudgetAlerter:
    """Sender of budget alerts; one per host, in the telemetry process."""

    def __init__(
        self,
        settings: Settings,
        ledger: Engine,
        clock: Clock,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._ledger, self._books = ledger, CommitWatch(ledger)
        self._clock = clock
        self._thresholds: dict[str, Sequence[int]] = {
            budget_key(budget.scope, budget.period): [
                round(value * PPM) for value in budget.alert_at
            ]
            for budget in settings.budgets
        }
        self._form = FORMS[settings.alerts.form]
        address, secret = webhook(settings.alerts, "alerts", environ)
        self._webhook = (
            None if address is None else SignedWebhook("the alerts webhook", address, secret, clock)
        )
        self._mail, self._mail_to = settings.mail, settings.alerts.mail_to
        self._password = environ.get(settings.mail.password_env or "") or None
        self._heard: dict[str, set[str]] = {}  # by alert: the places that have it, not yet all
        wanted = {
            "webhook": (self._webhook is not None, self._post_alert),
            "mail": (bool(self._mail_to), self._mail_alert),
        }
        self._places = {place: tell for place, (is_set, tell) in wanted.items() if is_set}

    async def run(self) -> None:
        """Record and deliver alerts until cancelled."""
        with closing(self._books):
            async with webhook_client() as client:
                await asyncio.gather(
                    self._repeat(partial(work_after_commit, self._books, self.record_alerts)),
                    self._repeat(partial(self.deliver_alerts, client)),
                )

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        """Repeat `work` every `LOOK_S`, separately for recording and for delivery."""
        while True:
            try:
                await work()
            except DBAPIError as error:
                log.warning("budget alerts wait: cannot read budgets error=%s", error.orig)
            await next_tick(LOOK_S)

    async def record_alerts(self) -> None:
        """Record reached thresholds and log them."""
        at_us = self._clock.wall_us()
        for alert, _ in highest_reached(await asyncio.to_thread(self._record_alerts, at_us)):
            log.warning("%s", alert_text(alert))

    def _record_alerts(self, at_us: int) -> tuple[Alert, ...]:
        """Record alerts by thresholds of the configuration and of entered budgets."""
        with reading(self._ledger) as connection:
            entered = entered_thresholds(connection, at_us)
        return record_alerts(self._ledger, self._thresholds | entered, at_us=at_us)

    async def deliver_alerts(self, client: "httpx.AsyncClient") -> None:
        """Deliver alerts that some channel has not received."""
        at_us = self._clock.wall_us()
        if not self._places:
            return
        due = await asyncio.to_thread(claim_due, self._ledger, at_us=at_us)
        for alert, lower in highest_reached(due):
            if await self._tell(client, alert):
                now_us = self._clock.wall_us()
                for heard in (*lower, alert):
                    self._heard.pop(heard.id, None)
                    await asyncio.to_thread(mark_delivered, self._ledger, heard, at_us=now_us)

    async def _tell(self, client: "httpx.AsyncClient", alert: Alert) -> bool:
        """Send an alert to each channel that lacks it. Return whether all channels have it now."""
        heard, all_heard = self._heard.setdefault(alert.id, set()), True
        for place, tell in self._places.items():
            if place in heard:
                continue
            if await tell(client, alert):
                heard.add(place)
            else:
                all_heard = False
        if all_heard:
            del self._heard[alert.id]
        return all_heard

    async def _post_alert(self, client: "httpx.AsyncClient", alert: Alert) -> bool:
        assert self._webhook is not None  # it is a channel only if configured
        return await self._webhook.post(client, alert.id, self._form(alert))

    async def _mail_alert(self, _client: "httpx.AsyncClient", alert: Alert) -> bool:
        text = alert_text(alert)
        words = f"Breakeven: {text}", f"{text}\n"
        try:
            await asyncio.to_thread(send_mail, self._mail, self._mail_to, *words, self._password)
        except PartlyTaken as error:  # a retry would repeat it for those who have it
            log.warning("alert mail reached a part of its addresses error=%s", error)
        except NotTaken as error:
            log.warning("alert mail failed error=%s", error)
            return False
        return True


def alert_text(alert: Alert) -> str:
    """Return one line of text: `team:search has spent $80.12 (80 %) of its $100.00 per month`."""
    percent = 100 * alert.spent_pusd // alert.limit_pusd if alert.limit_pusd else 100
    kind = "hard" if alert.hard else "soft"
    if valued_tag(alert.scope) is not None:
        return (
            f"more values of {alert.scope} have reached {100 * alert.threshold_ppm / PPM:g} % of "
            f"their {kind} budget of {usd_text(alert.limit_pusd)} per {alert.period}, the dearest "
            f"{usd_text(alert.spent_pusd)}; no further one is told of in this {alert.period}"
        )
    return (
        f"{alert.scope} has spent {usd_text(alert.spent_pusd)} ({percent} %) of its {kind} budget "
        f"of {usd_text(alert.limit_pusd)} per {alert.period}"
    )


def message_of(alert: Alert) -> dict[str, Any]:
    """Return the webhook message; dollars are exact decimal text."""
    return {
        "id": alert.id,
        "type": "budget.threshold_reached",
        "text": alert_text(alert),
        "scope": alert.scope,
        "period": alert.period,
        "hard": alert.hard,
        "threshold": alert.threshold_ppm / PPM,
        "spent_usd": f"{pusd_to_usd(alert.spent_pusd):f}",
        "limit_usd": f"{pusd_to_usd(alert.limit_pusd):f}",
        "window_start": _instant(alert.window),
        "window_end": _instant(alert.window_end),
        "reached_at": _instant(alert.reached_us // 1_000_000),
    }


def slack_message(alert: Alert) -> dict[str, Any]:
    """Return a message with `text` only: Slack refuses unknown members."""
    return {"text": slack_text(alert_text(alert))}


def slack_text(text: str) -> str:
    """Escape what Slack reads as links and mentions: tag values come from clients."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


FORMS = {"json": message_of, "slack": slack_message}


def _instant(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
