"""The format of key tokens and their hashes; the only code that handles secret bytes."""

import hashlib
import hmac
from typing import NamedTuple

GENERATION = "key_generation"
GENERATION_FILE = "keys.generation"  # in the run directory: 8 bytes, little endian
PEPPER_FILE = "pepper"
PREFIX = "gw"
PUBLIC_BYTES = 8
SECRET_BYTES = 32
TEXT_LIMIT = 256  # maximum characters of a key's name, and of the names in it
TOKEN_LIMIT = 256  # maximum characters; longer text is rejected unread


class TokenParts(NamedTuple):
    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"TokenParts(key_id={self.key_id!r})"


def token_text(key_id: str, secret: str) -> str:
    return f"{PREFIX}_{key_id}_{secret}"


def split_token(token: str) -> TokenParts | None:
    """Return the parts of a well-formed token, otherwise `None`."""
    if len(token) > TOKEN_LIMIT or not token.isascii():
        return None
    prefix, _, rest = token.partition("_")
    key_id, _, secret = rest.partition("_")
    if prefix != PREFIX or not key_id or not secret:
        return None
    return TokenParts(key_id, secret)


def secret_hash(pepper: bytes, key_id: str, secret: str) -> bytes:
    """Return the secret's hash, bound to the id: copied to another row it does not match."""
    return hmac.new(pepper, f"{key_id}_{secret}".encode(), hashlib.sha256).digest()


def is_match(stored: bytes, pepper: bytes, token: TokenParts) -> bool:
    """Return whether the token matches the stored hash, compared in constant time."""
    return hmac.compare_digest(stored, secret_hash(pepper, token.key_id, token.secret))
