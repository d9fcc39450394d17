"""A mail server for those who tell people something."""

import socketserver
import threading

import pytest


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
