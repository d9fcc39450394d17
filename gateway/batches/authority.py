"""Tickets with which a runner sends a line as its batch's key, without the key's secret.

At each start, `serve` writes a secret for its own processes to a file that only its user can read.
A runner signs a ticket for one try of one line. A worker accepts a valid ticket only from this host
and only at the entrance for lines. On public paths a ticket is not a token, and without the secret
no client can create one.
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
TICKET_LIMIT = 2048  # maximum characters of a ticket


class LineTicket(msgspec.Struct, frozen=True):
    """Permission to send one try of one line.

    `spill`: APIs may serve the line, too; otherwise only idle own engines. `onward`: the worker
    only plans the line for a provider's batch.
    """

    key_id: str
    batch_id: str
    request_id: str
    expires_us: int
    spill: bool = False
    onward: bool = False


_decode = msgspec.json.Decoder(LineTicket).decode


class TicketAuthority:
    """Signer and verifier of tickets."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, ticket: LineTicket) -> str:
        text = msgspec.json.encode(ticket)
        return f"{_base64(text)}.{_base64(self._mark(text))}"

    def read(self, token: str, *, now_us: int) -> LineTicket | None:
        """Return the ticket if it is signed with this secret and not expired, else `None`."""
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
    """Write a new secret; tickets of an earlier `serve` become invalid."""
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
