"""Vouchers: the dashboard's signed header that names the person of one request, for 30 s.

    x-breakeven-person: v1.NAME.UNTIL.BODY.MAC

The dashboard knows who has signed in; the gateway knows their permissions. The voucher has the name
(base64url; empty for an open dashboard), its end (microseconds), the SHA-256 of the body, and an
HMAC-SHA-256 over these, the method, and the path with its query. The key is in a file that both
read (`KEY_FILE`) and is never sent. A person who reads the header in transit can only repeat this
exact request within 30 seconds.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

HEADER = "x-breakeven-person"
KEY_FILE = "dashboard.key"  # in the state directory of a gateway
GATEWAY, KEY_FILE_VARIABLE = "BREAKEVEN_GATEWAY", "BREAKEVEN_DASHBOARD_KEY_FILE"
LASTS_US = 30_000_000
AHEAD_US = 30_000_000  # tolerated lead of another host's clock
_FORM, _LONGEST = "v1", 2_048  # characters


class InvalidVoucher(Exception):
    """A voucher that is malformed, expired or not for this request; the message says which."""


@dataclass(frozen=True, slots=True)
class VouchedUser:
    """The person of a voucher; `name` is `None` at an open dashboard.

    `body` is the SHA-256 that the request's body must have, in hexadecimal.
    """

    name: str | None
    body: str


@dataclass(frozen=True, slots=True)
class VouchedRequest:
    """The request of a voucher. `target` is the path with its query, as sent."""

    method: str
    target: str


def vouch(key: bytes, name: str | None, asked: VouchedRequest, body: bytes, now_us: int) -> str:
    """Return the header's value."""
    said = base64.urlsafe_b64encode((name or "").encode()).decode().rstrip("=")
    parts = (said, str(now_us + LASTS_US), digest(body))
    return ".".join((_FORM, *parts, _mac(key, asked, *parts)))


def verify_voucher(key: bytes, value: str, asked: VouchedRequest, now_us: int) -> VouchedUser:
    """Return the person that a voucher names. The caller must still compare the body.

    Raises `InvalidVoucher`.
    """
    parts = value.split(".") if value.isascii() and len(value) <= _LONGEST else []
    if len(parts) != 5 or parts[0] != _FORM:
        raise InvalidVoucher("it is not of the form that this gateway reads")
    _, said, until, body, mac = parts
    if not hmac.compare_digest(_mac(key, asked, said, until, body), mac):
        raise InvalidVoucher("it was not made for this request with this gateway's key")
    if not now_us <= int(until) <= now_us + LASTS_US + AHEAD_US:
        raise InvalidVoucher("it is over, or the clocks of both hosts differ")
    return VouchedUser(_name(said), body)


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _mac(key: bytes, asked: VouchedRequest, *parts: str) -> str:
    """Return the HMAC. No part contains a line break, so the joined text is unambiguous."""
    text = "\n".join(("breakeven person", _FORM, asked.method, asked.target, *parts))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _name(said: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)).decode() or None
    except (binascii.Error, UnicodeDecodeError) as error:  # never written by a holder of the key
        raise InvalidVoucher("its name cannot be read") from error
