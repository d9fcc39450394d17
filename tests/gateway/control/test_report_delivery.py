"""Reports go into a folder and by mail, or say why not."""

import json
import socketserver
import threading

import pytest

from gateway.config.schema_reports import MailSection
from gateway.control.report_delivery import NotTaken, mail_report, write_report

REPORT = {"id": "weekly:folder:1", "text": "Reduce to 1 GPU.\n", "verdict": {"gpus": 1}}


def test_a_folder_gets_text_and_json(tmp_path) -> None:
    write_report(tmp_path / "new", "weekly-2026-11-09", REPORT)
    assert (tmp_path / "new" / "weekly-2026-11-09.txt").read_text() == REPORT["text"]
    assert json.loads((tmp_path / "new" / "weekly-2026-11-09.json").read_text()) == REPORT
    (tmp_path / "file").write_text("")
    with pytest.raises(NotTaken, match="cannot be written"):
        write_report(tmp_path / "file", "weekly", REPORT)


class _Mailbox(socketserver.ThreadingTCPServer):
    """An SMTP server of one page, which refuses one recipient."""

    allow_reuse_address = True

    def __init__(self) -> None:
        self.got: list[str] = []
        super().__init__(("127.0.0.1", 0), _Conversation)


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline().decode().strip():
            word = line.split()[0].upper()
            if word == "DATA":
                self.wfile.write(b"354 go on\r\n")
                while (text := self.rfile.readline()) not in (b".\r\n", b""):
                    self.server.got.append(text.decode().rstrip())
            if word == "EHLO":
                self.wfile.write(b"250-here\r\n250 AUTH PLAIN\r\n")
                continue
            self.wfile.write(b"550 nobody\r\n" if "nobody@" in line else b"250 well\r\n")
            if word == "QUIT":
                return


@pytest.fixture
def mailbox():
    server = _Mailbox()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def mail_of(server: _Mailbox, tls: str = "none") -> MailSection:
    where = f"127.0.0.1:{server.server_address[1]}"
    return MailSection(server=where, sender="books@example.com", tls=tls)


def test_mail_is_plain_text_with_its_subject(mailbox) -> None:
    mail_report(mail_of(mailbox), ("fay@example.com",), "weekly", REPORT["text"], None)
    assert {"Subject: weekly", "To: fay@example.com", "Reduce to 1 GPU."} <= set(mailbox.got)


def test_a_refused_address_is_told(mailbox) -> None:
    to = ("fay@example.com", "nobody@example.com")
    with pytest.raises(NotTaken, match="refused 1 of 2"):
        mail_report(mail_of(mailbox), to, "weekly", REPORT["text"], None)


def test_a_server_without_tls_gets_nothing_where_tls_is_asked_for(mailbox) -> None:
    with pytest.raises(NotTaken, match="did not take it"):
        mail_report(
            mail_of(mailbox, "starttls"), ("fay@example.com",), "weekly", REPORT["text"], "pw"
        )
    assert mailbox.got == []


def test_a_password_that_mail_cannot_say_is_told_without_it(mailbox) -> None:
    """It ended the telemetry process, which knows whether engines are well."""
    mail = mail_of(mailbox).model_copy(update={"user": "books"})
    with pytest.raises(NotTaken, match="did not take it: UnicodeEncodeError") as raised:
        mail_report(mail, ("fay@example.com",), "weekly", REPORT["text"], "p\u00e4ss")
    assert "p\u00e4ss" not in str(raised.value)
    assert mailbox.got == []
