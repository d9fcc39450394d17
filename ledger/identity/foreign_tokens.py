"""Tokens that another gateway made, of which its database holds the SHA-256 alone.

Such a key's id is made of that digest under our pepper, so whoever sends the token is looked up as
everybody is, and importing it twice makes one key. What is stored is an HMAC under the pepper over
both: the digest itself, which lies in the other database, opens nothing here.
"""

import hashlib
import hmac

from ledger.identity.tokens import PUBLIC_BYTES, TOKEN_LIMIT

PREFIX = "sk-"  # of LiteLLM's tokens
_ID, _SECRET = b"litellm id\0", b"litellm secret\0"


def digest_of(token: str) -> str | None:
    """Return LiteLLM's name of a token, as hexadecimal digits; None for what is none of its."""
    if not token.startswith(PREFIX) or len(token) > TOKEN_LIMIT or not token.isascii():
        return None
    return hashlib.sha256(token.encode()).hexdigest()


def foreign_id(pepper: bytes, digest: str) -> str:
    """Return the id of the key with this digest."""
    return hmac.digest(pepper, _ID + digest.encode(), "sha256")[:PUBLIC_BYTES].hex()


def foreign_hash(pepper: bytes, key_id: str, digest: str) -> bytes:
    """Return what is stored; no token of ours has the same, for theirs hash other texts."""
    return hmac.digest(pepper, _SECRET + f"{key_id}\0{digest}".encode(), "sha256")


def is_foreign_match(stored: bytes, pepper: bytes, key_id: str, digest: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(stored, foreign_hash(pepper, key_id, digest))
