"""A person's request over HTTP: who vouches for whom, for that one request and half a minute.

    x-breakeven-person: v1.NAME.UNTIL.BODY.MAC

The dashboard knows who has signed in; the gateway knows what they may do. Between them goes the
name (base64url; empty: whoever sits at an open dashboard), until when it holds (microseconds), the
SHA-256 of the body, and an HMAC-SHA-256 over these, the method and the path with its query, under
a key that both read from a file (`KEY_FILE`). The key never travels, and whoever reads the header
on its way can ask this very question once more within half a minute, and nothing else.
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
AHEAD_US = 30_000_000  # another host's clock may be so far ahead of ours
_FORM, _LONGEST = "v1", 2_048  # characters


class InvalidVoucher(Exception):
    """Nobody who has the key said so of this request now; the text says what does not hold."""


@dataclass(frozen=True, slots=True)
class VouchedUser:
    """`name`: None at an open dashboard. `body`: the SHA-256 that its body must have, in hex."""

    name: str | None
    body: str


@dataclass(frozen=True, slots=True)
class VouchedRequest:
    """`target`: the path with its query, as it is sent."""

    method: str
    target: str


def vouch(key: bytes, name: str | None, asked: VouchedRequest, body: bytes, now_us: int) -> str:
    """The header's value."""
    said = base64.urlsafe_b64encode((name or "").encode()).decode().rstrip("=")
    parts = (said, str(now_us + LASTS_US), digest(body))
    return ".".join((_FORM, *parts, _mac(key, asked, *parts)))


def verify_voucher(key: bytes, value: str, asked: VouchedRequest, now_us: int) -> VouchedUser:
    """Return who is vouched for. Raises `InvalidVoucher`; the body is still to be compared."""
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
    """No part holds a line's end: each begins where the one before it has ended."""
    text = "\n".join(("breakeven person", _FORM, asked.method, asked.target, *parts))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _name(said: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)).decode() or None
    except (binascii.Error, UnicodeDecodeError) as error:  # who has the key does not write so
        raise InvalidVoucher("its name cannot be read") from error
