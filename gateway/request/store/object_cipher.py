"""Encryption of stored objects: AES-256-GCM with a key per object, which is wrapped.

The wrapping key is derived (HKDF-SHA256) from the pepper, which all hosts of a ledger share and
which is in no database. An object's key is used once, so no nonce repeats; once its wrapped form
(RFC 3394) is deleted, the object is unreadable. Team, id, kind and residency are authenticated: a
row that was moved or has a looser residency does not decrypt.
"""

import os
from typing import NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

VERSION = b"\1"
NONCE_BYTES, KEY_BYTES = 12, 32
PURPOSE = b"breakeven stored object 1"
_TEXT_AT = len(VERSION) + NONCE_BYTES


class EncryptedText(NamedTuple):
    """A text as stored: its wrapped key, and the text encrypted with it."""

    wrapped_key: bytes
    sealed: bytes


class ObjectCipher:
    def __init__(self, pepper: bytes) -> None:
        self._key = HKDF(SHA256(), KEY_BYTES, None, PURPOSE).derive(pepper)

    def seal(self, plain: bytes, owner: tuple[str, ...]) -> EncryptedText:
        """Encrypt under a new key; opening it requires the same `owner`."""
        key, nonce = AESGCM.generate_key(KEY_BYTES * 8), os.urandom(NONCE_BYTES)
        text = AESGCM(key).encrypt(nonce, plain, _bound_to(owner))
        return EncryptedText(aes_key_wrap(self._key, key), VERSION + nonce + text)

    def open(self, encrypted: EncryptedText, owner: tuple[str, ...]) -> bytes | None:
        """Return the text; None for another owner, altered data or another pepper."""
        sealed = encrypted.sealed
        if not sealed.startswith(VERSION):
            return None
        try:
            key = aes_key_unwrap(self._key, encrypted.wrapped_key)
            nonce, text = sealed[len(VERSION) : _TEXT_AT], sealed[_TEXT_AT:]
            return AESGCM(key).decrypt(nonce, text, _bound_to(owner))
        except (InvalidTag, InvalidUnwrap, ValueError):
            return None


def _bound_to(owner: tuple[str, ...]) -> bytes:
    return VERSION + msgspec.msgpack.encode(owner)
