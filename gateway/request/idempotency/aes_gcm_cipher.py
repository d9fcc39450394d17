"""Encryption of stored answers: AES-256-GCM with a key per answer.

The key is derived (HKDF-SHA256) from the configured secret and a random salt stored with the
ciphertext, so no nonce repeats under one key. The answer's owner is authenticated: a row that was
altered, moved to another request or encrypted with another secret does not decrypt.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.errors import ConfigError
from gateway.request.idempotency.response_replay import SECRET_CHARACTERS

VERSION = b"\1"
SALT_BYTES, NONCE_BYTES, KEY_BYTES = 32, 12, 32
PURPOSE = b"breakeven kept answer 1"
_NONCE_AT = len(VERSION) + SALT_BYTES
_TEXT_AT = _NONCE_AT + NONCE_BYTES


class AesGcmCipher:
    def __init__(self, secret: str) -> None:
        """Take the secret. Raises `ConfigError` if it is short enough to guess."""
        if len(secret) < SECRET_CHARACTERS:
            raise ConfigError(
                [f"the secret of kept answers has fewer than {SECRET_CHARACTERS} characters"]
            )
        self._secret = secret.encode()

    def seal(self, plain: bytes, owner: bytes) -> bytes:
        """Encrypt `plain`; opening it requires the same `owner`."""
        salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
        text = self._cipher(salt).encrypt(nonce, plain, VERSION + owner)
        return VERSION + salt + nonce + text

    def open(self, sealed: bytes, owner: bytes) -> bytes | None:
        """Return the content sealed for this owner with this secret, else None."""
        if not sealed.startswith(VERSION):
            return None
        salt = sealed[len(VERSION) : _NONCE_AT]
        nonce, text = sealed[_NONCE_AT:_TEXT_AT], sealed[_TEXT_AT:]
        try:
            return self._cipher(salt).decrypt(nonce, text, VERSION + owner)
        except (InvalidTag, ValueError):
            return None

    def _cipher(self, salt: bytes) -> AESGCM:
        derived = HKDF(SHA256(), KEY_BYTES, salt, PURPOSE).derive(self._secret)
        return AESGCM(derived)
