"""By what right a runner sends a line as the key that made its batch, without that key's secret.

`serve` makes a secret for its own processes at each start, in a file that only its user can read. A
runner signs a ticket for one try of one line with it; a worker takes a ticket only from this host
and only while it is valid. It opens the entrance for lines and nothing else: on the public paths it
is no token, and outside the secret nothing that a client has or sends can make one.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

KEPT_IN = "batches.secret"
SECRET_BYTES = 32
TICKET_LIMIT = 2048  # longer text is no ticket and is not looked at


class LineTicket(msgspec.Struct, frozen=True):
    """One try of one line. `spill`: APIs may serve it; without, only idle engines of our own.

    `onward`: it is asked only what a provider's batch would get of it.
    """

    key_id: str
    batch_id: str
    request_id: str
    expires_us: int
    spill: bool = False
    onward: bool = False


_decode = msgspec.json.Decoder(LineTicket).decode


class TicketAuthority:
    """Signs and reads tickets."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, ticket: LineTicket) -> str:
        text = msgspec.json.encode(ticket)
        return f"{_base64(text)}.{_base64(self._mark(text))}"

    def read(self, token: str, *, now_us: int) -> LineTicket | None:
        """A ticket that this secret signed and whose time is not over."""
        if len(token) > TICKET_LIMIT or not token.isascii():
            return None
        text, _, mark = token.partition(".")
        try:
            content = base64.urlsafe_b64decode(text)
            if not hmac.compare_digest(base64.urlsafe_b64decode(mark), self._mark(content)):
                return None
            ticket = _decode(content)
        except (binascii.Error, ValueError):
            return None
        return ticket if now_us < ticket.expires_us else None

    def _mark(self, text: bytes) -> bytes:
        return hmac.new(self._secret, b"batch line\0" + text, hashlib.sha256).digest()


def make_secret(run_dir: Path, new_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
    """A new one: tickets of an earlier `serve` are void."""
    draft = run_dir / f"{KEPT_IN}.new"
    draft.unlink(missing_ok=True)
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, new_bytes(SECRET_BYTES))
    finally:
        os.close(file)
    draft.replace(run_dir / KEPT_IN)


def load_authority(run_dir: Path) -> TicketAuthority:
    return TicketAuthority((run_dir / KEPT_IN).read_bytes())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
