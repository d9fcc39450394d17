"""Mail is taken by a server, or it is said why not."""

import pytest

from gateway.config.schema_reports import MailSection
from gateway.control.mail import NotTaken, send_mail

TEXT = "Reduce to 1 GPU.\n"


def mail_of(server, tls: str = "none") -> MailSection:
    where = f"127.0.0.1:{server.server_address[1]}"
    return MailSection(server=where, sender="books@example.com", tls=tls)


def test_mail_is_plain_text_with_its_subject(mailbox) -> None:
    send_mail(mail_of(mailbox), ("fay@example.com",), "weekly", TEXT, None)
    assert {"Subject: weekly", "To: fay@example.com", "Reduce to 1 GPU."} <= set(mailbox.got)


def test_a_refused_address_is_told(mailbox) -> None:
    to = ("fay@example.com", "nobody@example.com")
    with pytest.raises(NotTaken, match="refused 1 of 2"):
        send_mail(mail_of(mailbox), to, "weekly", TEXT, None)


def test_a_server_without_tls_gets_nothing_where_tls_is_asked_for(mailbox) -> None:
    with pytest.raises(NotTaken, match="rejected it"):
        send_mail(mail_of(mailbox, "starttls"), ("fay@example.com",), "weekly", TEXT, "pw")
    assert mailbox.got == []


def test_a_password_that_mail_cannot_say_is_told_without_it(mailbox) -> None:
    """It ended the telemetry process, which knows whether engines are well."""
    mail = mail_of(mailbox).model_copy(update={"user": "books"})
    with pytest.raises(NotTaken, match="rejected it: UnicodeEncodeError") as raised:
        send_mail(mail, ("fay@example.com",), "weekly", TEXT, "p\u00e4ss")
    assert "p\u00e4ss" not in str(raised.value)
    assert mailbox.got == []
