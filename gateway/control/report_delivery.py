"""The three ways that a report goes out: into a folder, to a webhook, by mail.

Each raises `NotTaken` with words for the log that hold no secret; whoever called tries again.
"""

import json
import smtplib
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.config.schema_reports import MailSection
from gateway.control.budget_alerts import signature
from gateway.newfile import new_file

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 20.0
MAIL_PORT = 25


class NotTaken(Exception):
    """The place did not take the report."""


def write_report(folder: Path, name: str, report: Mapping[str, Any]) -> None:
    """Write `NAME.txt` and `NAME.json` there, each whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in (("txt", report["text"]), ("json", json.dumps(report, indent=1))):
            with new_file(folder / f"{name}.{suffix}", replace=True) as file:
                file.write(text.encode())
    except OSError as error:
        raise NotTaken(f"{folder} cannot be written: {error.strerror}") from None


async def post_report(
    client: "httpx.AsyncClient",
    url: str,
    message: Mapping[str, Any],
    secret: str | None,
    at_s: int,
) -> None:
    """Post the report as JSON; any 2xx has taken it."""
    import httpx  # noqa: PLC0415  (where no report is posted it is not needed)

    body = json.dumps(message).encode()
    headers = {"content-type": "application/json"}
    if secret is not None:
        headers["x-breakeven-signature"] = signature(secret.encode(), body, at_s)
    try:
        answer = await client.post(url, content=body, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise NotTaken(f"the webhook did not hear it: {type(error).__name__}") from None
    if not answer.is_success:
        raise NotTaken(f"the webhook answered {answer.status_code}")


def mail_report(
    mail: MailSection, to: tuple[str, ...], subject: str, text: str, password: str | None
) -> None:
    """Send the report as plain text; blocks for as long as the server takes."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = mail.sender, ", ".join(to), subject
    message.set_content(text)
    host, _, port = (mail.server or "").rpartition(":")
    place = host.strip("[]"), int(port or MAIL_PORT)
    try:
        if mail.tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                *place, timeout=TIMEOUT_S, context=ssl.create_default_context()
            )
        else:
            server = smtplib.SMTP(*place, timeout=TIMEOUT_S)
        with closing(server):
            if mail.tls == "starttls":
                server.starttls(context=ssl.create_default_context())
            if mail.user is not None:
                server.login(mail.user, password or "")
            refused = server.send_message(message)
            with suppress(OSError, smtplib.SMTPException):
                server.quit()  # it was taken, however the goodbye goes
    except (OSError, smtplib.SMTPException) as error:
        raise NotTaken(f"the mail server did not take it: {type(error).__name__}") from None
    if refused:
        raise NotTaken(f"the mail server refused {len(refused)} of {len(to)} addresses")
