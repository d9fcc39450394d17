"""Halves of characters in JSON become U+FFFD; whole ones and backslashes stay."""

import pytest

from backends.half_characters import HalfJoiner, whole_characters


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


@pytest.mark.parametrize(
    ("documents", "joined"),
    [
        ([rb'{"a":"x\ud83d"}', rb'{"a":"\ude00y"}'], [b'{"a":"x"}', rb'{"a":"\ud83d\ude00y"}']),
        (  # what says nothing may come between
            [rb'{"a":"\ud83d"}', b"{}", rb'{"a":"\uDE00"}'],
            [b'{"a":""}', b"{}", rb'{"a":"\ud83d\uDE00"}'],
        ),
        (  # the next one is cut, too
            [rb'{"a":"\ud83d"}', rb'{"a":"\ude00\ud83d"}', rb'{"a":"\ude01"}'],
            [b'{"a":""}', rb'{"a":"\ud83d\ude00"}', rb'{"a":"\ud83d\ude01"}'],
        ),
    ],
)
def test_halves_in_two_documents_are_one_character(
    documents: list[bytes], joined: list[bytes]
) -> None:
    joiner = HalfJoiner()
    assert [joiner.feed(document) for document in documents] == joined


@pytest.mark.parametrize(
    "document",
    [
        rb'{"a":"\ud83d\ude00"}', rb'{"a":"\\ud83d"}', rb'{"a":"\u00e9"}', b'{"a":"plain"}',
        rb'{"a":"\ude00"}', rb'{"a":"\ud83dx"}', rb'{"a":"\"\ude00"}',
    ],
)  # fmt: skip
def test_whole_ones_and_backslashes_stay(document: bytes) -> None:
    joiner = HalfJoiner()
    assert [joiner.feed(document), joiner.feed(document)] == [document, document]
