"""The shape of a key's token and of its hash; the only code that handles secrets' bytes."""

import hashlib
import hmac
from typing import NamedTuple

GENERATION = "key_generation"
GENERATION_FILE = "keys.generation"  # in the run directory: 8 bytes, little endian
PEPPER_FILE = "pepper"
PREFIX = "gw"
PUBLIC_BYTES = 8
SECRET_BYTES = 32
TEXT_LIMIT = 256  # characters of a key's name, and of the names that it holds
TOKEN_LIMIT = 256  # longer text is no token of ours and is not looked at


class TokenParts(NamedTuple):
    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"TokenParts(key_id={self.key_id!r})"


def token_text(key_id: str, secret: str) -> str:
    return f"{PREFIX}_{key_id}_{secret}"


def split_token(token: str) -> TokenParts | None:
    """The parts of a well-formed token, else None."""
    if len(token) > TOKEN_LIMIT or not token.isascii():
        return None
    prefix, _, rest = token.partition("_")
    key_id, _, secret = rest.partition("_")
    if prefix != PREFIX or not key_id or not secret:
        return None
    return TokenParts(key_id, secret)


def secret_hash(pepper: bytes, key_id: str, secret: str) -> bytes:
    """Bound to the id, so that a hash copied to another row is worth nothing."""
    return hmac.new(pepper, f"{key_id}_{secret}".encode(), hashlib.sha256).digest()


def is_match(stored: bytes, pepper: bytes, token: TokenParts) -> bool:
    """In constant time."""
    return hmac.compare_digest(stored, secret_hash(pepper, token.key_id, token.secret))
