"""Stored objects open for their owner under the deployment's pepper, and for nobody else."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.request.store.object_cipher import EncryptedText, ObjectCipher

PEPPER = b"p" * 32
OWNER = ("search", "resp_1", "response", "internal_only")
CIPHER = ObjectCipher(PEPPER)


@given(plain=st.binary(max_size=200), owner=st.lists(st.text(max_size=8), max_size=4).map(tuple))
def test_what_is_sealed_opens_for_its_owner(plain: bytes, owner: tuple[str, ...]) -> None:
    encrypted = CIPHER.seal(plain, owner)
    assert ObjectCipher(PEPPER).open(encrypted, owner) == plain
    assert CIPHER.open(encrypted, (*owner, "")) is None


def test_another_owner_residency_or_pepper_opens_nothing() -> None:
    encrypted = CIPHER.seal(b"text", OWNER)
    for place in range(len(OWNER)):
        other = (*OWNER[:place], "any", *OWNER[place + 1 :])
        assert CIPHER.open(encrypted, other) is None
    assert ObjectCipher(b"q" * 32).open(encrypted, OWNER) is None


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_one_wrong_bit_opens_nothing(place: int, bit: int) -> None:
    for number, part in enumerate(encrypted := CIPHER.seal(b"some text", OWNER)):
        changed = bytearray(part)
        changed[place % len(part)] ^= 1 << bit
        parts = [*encrypted]
        parts[number] = bytes(changed)
        assert CIPHER.open(EncryptedText(*parts), OWNER) is None


def test_without_its_key_or_cut_short_a_text_stays_closed() -> None:
    wrapped_key, sealed = CIPHER.seal(b"text", OWNER)
    other_key = CIPHER.seal(b"text", OWNER).wrapped_key
    for key, text in (
        (b"", sealed),
        (other_key, sealed),
        (wrapped_key, b""),
        (wrapped_key, sealed[:9]),
    ):
        assert CIPHER.open(EncryptedText(key, text), OWNER) is None


def test_each_text_has_a_key_of_its_own() -> None:
    first, second = CIPHER.seal(b"text", OWNER), CIPHER.seal(b"text", OWNER)
    assert first.wrapped_key != second.wrapped_key
    assert first.sealed != second.sealed
