"""Two ways that a report goes out: into a folder, and by mail; webhooks are `signed_webhook`.

Each raises `NotTaken` with words for the log that hold no secret; whoever called tries again.
"""

import json
import smtplib
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from gateway.config.schema_reports import MailSection
from gateway.newfile import new_file

TIMEOUT_S = 20.0
MAIL_PORT = 25


class NotTaken(Exception):
    """The place did not take the report."""


class PartlyTaken(NotTaken):
    """Some of several addresses did not take it, and the others have it."""


def write_report(folder: Path, name: str, report: Mapping[str, Any]) -> None:
    """Write `NAME.txt` and `NAME.json` there, each whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in (("txt", report["text"]), ("json", json.dumps(report, indent=1))):
            with new_file(folder / f"{name}.{suffix}", replace=True) as file:
                file.write(text.encode())
    except OSError as error:
        raise NotTaken(f"{folder} cannot be written: {error.strerror}") from None


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
    except (OSError, smtplib.SMTPException, ValueError) as error:  # also: what is no ASCII
        raise NotTaken(f"the mail server did not take it: {type(error).__name__}") from None
    if refused:
        raise PartlyTaken(f"the mail server refused {len(refused)} of {len(to)} addresses")
