"""What chat answers say, however a vendor writes it."""

import pytest

from gateway.request.dialects.chat import ContentPiece, first_choice, pieces, read_object, tokens_of
from ledger.journals.records import TokenCounts

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"content": "hi"}, [ContentPiece("text", "hi")]),
        ({"content": None, "role": "assistant"}, []),
        ({"content": ""}, []),
        (
            {"reasoning": "hm", "content": "hi"},
            [ContentPiece("reasoning", "hm"), ContentPiece("text", "hi")],
        ),
        ({"reasoning_content": "hm"}, [ContentPiece("reasoning", "hm")]),
        ({"refusal": "no"}, [ContentPiece("refusal", "no")]),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "thinking", "thinking": "so"},
                    {"type": "text", "text": "hi"},
                    "odd",
                ]
            },
            [
                ContentPiece("reasoning", "hm"),
                ContentPiece("reasoning", "so"),
                ContentPiece("text", "hi"),
            ],
        ),
        (
            {
                "tool_calls": [
                    {"index": 2, "id": "a", "function": {"name": "f", "arguments": "{"}},
                    {"function": {"arguments": "}"}},
                    {"id": "c", "function": None},
                    7,
                ]
            },
            [
                ContentPiece("call", "{", 2, "a", "f"),
                ContentPiece("call", "}", 1),
                ContentPiece("call", "", 2, "c"),
            ],
        ),
        (
            {"content": None, "audio": {"id": "a", "data": "AAAA", "transcript": "said"}},
            [ContentPiece("text", "said")],
        ),
        (
            {"content": "so", "audio": {"transcript": "said"}, "images": [PICTURE, 7, {}]},
            [ContentPiece("text", "so"), ContentPiece("picture", "data:image/png;base64,aGk=")],
        ),
        (
            {
                "content": [
                    {"type": "image_url", "image_url": "https://a/b"},
                    {"thinking": [PICTURE]},
                ]
            },
            [ContentPiece("picture", "https://a/b")],
        ),
        ({"content": 5, "audio": 7, "images": "odd"}, []),
        ({"content": 5, "tool_calls": "odd", "reasoning": {}, "refusal": 1}, []),
        (None, []),
    ],
)
def test_pieces(said: object, expected: list[ContentPiece]) -> None:
    assert list(pieces(said)) == expected


@pytest.mark.parametrize("chunk", [{}, {"choices": []}, {"choices": [1]}, {"choices": {}}])
def test_no_choice(chunk: dict) -> None:
    assert first_choice(chunk) is None


def test_what_is_no_object_reads_as_nothing() -> None:
    assert [read_object(payload) for payload in (b"[1]", b"{", b"\xff", b"[" * 9999)] == [None] * 4
    assert read_object(b'{"a": 1}') == {"a": 1}


def test_tokens_are_those_of_the_ledger() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 6},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert tokens_of(usage) == TokenCounts(input=4, cached=6, output=4, reasoning=3)
    # Of what contradicts itself the most of each count is booked, and told.
    most = TokenCounts(input=5, cached=6, output=4, reasoning=3)
    assert tokens_of({**usage, "prompt_tokens": 5}) == most
    assert tokens_of({**usage, "prompt_tokens": -5}) == TokenCounts()
    assert tokens_of(None) == TokenCounts()


def test_half_a_character_is_told_as_an_unknown_one() -> None:
    """No text of another dialect can hold it; the chunk was left out without a word."""
    assert read_object(rb'{"content":"a\ud83d"}') == {"content": "a\ufffd"}
    assert read_object(rb'{"content":"a\ud83d"') is None
