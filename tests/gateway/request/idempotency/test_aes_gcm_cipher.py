"""What is sealed opens for its owner with its secret, as it was, and for nobody else."""

import pytest

from gateway.errors import ConfigError
from gateway.request.idempotency.aes_gcm_cipher import AesGcmCipher

SECRET = "correct horse battery staple, twice"
TEXT = b"the patient's name is Ada"


@pytest.fixture
def cipher() -> AesGcmCipher:
    return AesGcmCipher(SECRET)


@pytest.mark.parametrize("text", [b"", TEXT, bytes(range(256)) * 4096])
def test_what_is_sealed_opens(cipher, text):
    assert cipher.open(cipher.seal(text, b"me"), b"me") == text
    assert AesGcmCipher(SECRET).open(cipher.seal(text, b"me"), b"me") == text  # after a restart


def test_the_text_cannot_be_read(cipher):
    sealed = cipher.seal(TEXT, b"me")
    assert b"patient" not in sealed
    assert b"Ada" not in sealed
    assert SECRET.encode() not in sealed


def test_the_same_is_never_sealed_alike(cipher):
    sealed = [cipher.seal(TEXT, b"me") for _ in range(50)]
    assert len({item[:45] for item in sealed}) == len(sealed)  # version, salt and nonce
    assert len({item[45:] for item in sealed}) == len(sealed)


def test_another_owner_or_secret_opens_nothing(cipher):
    sealed = cipher.seal(TEXT, b"me")
    assert cipher.open(sealed, b"you") is None
    assert AesGcmCipher(SECRET + ".").open(sealed, b"me") is None


def test_whatever_was_altered_does_not_open(cipher):
    sealed = cipher.seal(TEXT, b"me")
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 1
        assert cipher.open(bytes(altered), b"me") is None, place
    for length in range(len(sealed)):
        assert cipher.open(sealed[:length], b"me") is None, length
    assert cipher.open(sealed + b"\0", b"me") is None


def test_a_secret_that_is_quickly_guessed_is_refused():
    with pytest.raises(ConfigError, match="fewer than 32 characters"):
        AesGcmCipher("password")
