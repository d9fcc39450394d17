"""Scheduled reports, sent after each day, week or month of the reporting time zone.

There is one sender per host, in the telemetry process. The ledger records whose turn it is
(`report_turns`), so a report is sent once whatever the number of hosts. Failed deliveries are
repeated.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.clock import Clock, next_tick
from gateway.config.credentials import posted_to, webhook
from gateway.config.schema_reports import ReportSection
from gateway.config.settings import Settings
from gateway.control.budget_alerts import slack_text
from gateway.control.mail import NotTaken, PartlyTaken, send_mail
from gateway.control.report_delivery import write_report
from gateway.control.signed_webhook import SignedWebhook, webhook_client
from ledger.database import reading
from ledger.reporting_zone import ReportingZone, reporting_zone
from ledger.reports.report_turns import ReportTurn, claim_turn, last_period, mark_sent
from ledger.spans import HOUR_US, Scope

LOOK_S = 30.0
# GPU hours of a period close some minutes after its end.
SETTLED_US = HOUR_US

log = logging.getLogger("breakeven.reports")

if TYPE_CHECKING:  # imported where a report is made
    import httpx

    from ledger.reports.periodic import PeriodicReport


class ReportSender:
    """Sender of the reports of a configuration."""

    def __init__(
        self,
        settings: Settings,
        ledger: Engine,
        clock: Clock,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._reports, self._mail = settings.reports, settings.mail
        self._ledger, self._clock = ledger, clock
        self._password = environ.get(settings.mail.password_env or "") or None
        _, secret = webhook(settings.alerts, "alerts", environ)
        self._webhooks = {}
        for index, report in enumerate(settings.reports):
            address = posted_to(report.webhook_env, f"reports[{index}].webhook_env", environ)
            if address is not None:
                name = f"the webhook of report {report.name}"
                self._webhooks[report.name] = SignedWebhook(name, address, secret, clock)
        self._is_text = settings.alerts.form == "slack"

    async def run(self) -> None:
        """Send due reports until cancelled."""
        if not self._reports:
            return
        async with webhook_client() as client:
            while True:
                try:
                    await self.send_due(client)
                except DBAPIError as error:
                    log.warning("reports wait: cannot read the ledger error=%s", error.orig)
                await next_tick(LOOK_S)

    async def send_due(self, client: "httpx.AsyncClient") -> None:
        """Send the reports that are due and not claimed by another host."""
        now_us = self._clock.wall_us()
        zone = await asyncio.to_thread(self._zone)
        for report in self._reports:
            try:
                await self._send_report(client, report, zone, now_us)
            except DBAPIError:
                raise
            except Exception as error:
                # It must not end the telemetry process, which watches the engines.
                log.exception("report failed report=%s error=%s", report.name, type(error).__name__)

    async def _send_report(
        self, client: "httpx.AsyncClient", report: ReportSection, zone: ReportingZone, now_us: int
    ) -> None:
        scope = last_period(zone, report.every, now_us - SETTLED_US)
        turns = [
            turn
            for place in _places(report)
            if (turn := await asyncio.to_thread(
                claim_turn, self._ledger, report.name, place, scope.start_us, at_us=now_us
            ))
        ]  # fmt: skip
        if turns:
            made = await asyncio.to_thread(self._read, scope, zone, now_us)
            for turn in turns:
                await self._send(client, report, turn, made)

    def _zone(self) -> ReportingZone:
        with reading(self._ledger) as connection:
            return reporting_zone(connection)

    def _read(self, scope: Scope, zone: ReportingZone, now_us: int) -> "PeriodicReport":
        # Imported late: no host needs these queries at its start.
        from ledger.reports.periodic import periodic_report  # noqa: PLC0415  (as above)

        with reading(self._ledger) as connection:
            return periodic_report(connection, scope, zone, now_us)

    async def _send(
        self,
        client: "httpx.AsyncClient",
        report: ReportSection,
        turn: ReportTurn,
        made: "PeriodicReport",
    ) -> None:
        if report.when == "always" or made.is_unusual:
            try:
                await self._deliver(client, report, turn, made)
            except PartlyTaken as error:  # a retry would repeat it for those who have it
                log.warning(
                    "report reached a part of its addresses report=%s error=%s", turn.id, error
                )
            except NotTaken as error:
                log.warning("report was not sent report=%s error=%s", turn.id, error)
                return
        now_us = self._clock.wall_us()
        await asyncio.to_thread(mark_sent, self._ledger, turn, at_us=now_us)

    async def _deliver(
        self,
        client: "httpx.AsyncClient",
        report: ReportSection,
        turn: ReportTurn,
        made: "PeriodicReport",
    ) -> None:
        message = {"id": turn.id, "type": "report", "name": report.name, **made.described()}
        if turn.place == "folder":
            day = made.zone.date_of(turn.start_us)
            await asyncio.to_thread(
                write_report, Path(report.folder or "."), f"{report.name}-{day}", message
            )
        elif turn.place == "webhook":
            hook = self._webhooks.get(report.name)
            if hook is None:
                raise NotTaken(f"`{report.webhook_env}` is not set in the environment")
            # Slack refuses members that it does not know.
            posted = {"text": slack_text(message["text"])} if self._is_text else message
            if not await hook.post(client, turn.id, posted):
                raise NotTaken("the webhook rejected it")
        else:
            subject = f"Breakeven {report.name}: {made.title}"
            await asyncio.to_thread(
                send_mail, self._mail, report.mail_to, subject, made.text(), self._password
            )


def _places(report: ReportSection) -> list[str]:
    places = {
        "folder": report.folder is not None,
        "webhook": report.webhook_env is not None,
        "mail": bool(report.mail_to),
    }
    return [place for place, is_wanted in places.items() if is_wanted]
