"""Tokens that another gateway made, whose database has only their SHA-256.

The id of such a key is derived from that digest with our pepper. So its token is looked up like any
other, and a second import adds no second key. The stored hash is an HMAC of both under the pepper:
the digest in the other gateway's database does not authenticate here.
"""

import hashlib
import hmac

from ledger.identity.tokens import PUBLIC_BYTES, TOKEN_LIMIT

PREFIX = "sk-"  # prefix of LiteLLM's tokens
_ID, _SECRET = b"litellm id\0", b"litellm secret\0"


def digest_of(token: str) -> str | None:
    """Return LiteLLM's digest of a token in hexadecimal, `None` for other tokens."""
    if not token.startswith(PREFIX) or len(token) > TOKEN_LIMIT or not token.isascii():
        return None
    return hashlib.sha256(token.encode()).hexdigest()


def foreign_id(pepper: bytes, digest: str) -> str:
    """Return the key id for this digest."""
    return hmac.digest(pepper, _ID + digest.encode(), "sha256")[:PUBLIC_BYTES].hex()


def foreign_hash(pepper: bytes, key_id: str, digest: str) -> bytes:
    """Return the hash to store. It never equals the hash of a token of ours."""
    return hmac.digest(pepper, _SECRET + f"{key_id}\0{digest}".encode(), "sha256")


def is_foreign_match(stored: bytes, pepper: bytes, key_id: str, digest: str) -> bool:
    """Return whether the digest matches the stored hash, compared in constant time."""
    return hmac.compare_digest(stored, foreign_hash(pepper, key_id, digest))
