"""Halves of characters in JSON become U+FFFD; whole ones and backslashes stay."""

import pytest

from backends.half_characters import whole_characters


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (rb"\ud83d", rb"\ufffd"),
        (rb"\ud83d\ude00", None),
        (rb"\\ud83d", None),
        (rb"\ude00\ud83d\ude00", rb"\ufffd\ud83d\ude00"),
        (b"plain", None),
    ],
)
def test_halves_are_unknown_characters(text: bytes, mended: bytes | None) -> None:
    assert whole_characters(text) == mended
