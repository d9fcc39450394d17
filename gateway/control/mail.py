"""Plain text mail through the configured server.

`NotTaken` has a text for the log without secrets; the caller retries.
"""

import smtplib
import ssl
from contextlib import closing, suppress
from email.message import EmailMessage

from gateway.config.schema_reports import MailSection

TIMEOUT_S = 20.0
MAIL_PORT = 25


class NotTaken(Exception):
    """The recipient's server did not accept the message."""


class PartlyTaken(NotTaken):
    """Some of several addresses were refused; the others received the message."""


def send_mail(
    mail: MailSection, to: tuple[str, ...], subject: str, text: str, password: str | None
) -> None:
    """Send a plain text mail. Blocks until the server accepts it. Raises `NotTaken`."""
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
                server.quit()  # the mail is accepted even if QUIT fails
    except (OSError, smtplib.SMTPException, ValueError) as error:  # also: what is no ASCII
        raise NotTaken(f"the mail server rejected it: {type(error).__name__}") from None
    if refused:
        raise PartlyTaken(f"the mail server refused {len(refused)} of {len(to)} addresses")
