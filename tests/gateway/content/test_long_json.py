"""Long JSON means what it does at once."""

import json
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.content import long_json
from gateway.content.long_json import count_quotes, decode_long, let_go
from gateway.content.turn_taker import TurnTaker

PARTS = [{"type": "text", "text": f"p{number} \u00e4\n"} for number in range(9_000)]


@pytest.mark.parametrize(
    "value",
    [
        [], {}, "a" * 200_000, [{"role": "user", "content": PARTS}, 1.5, None],
        {"a": PARTS, "b": [1, 2], "e": '\u00e9\\"\n\U0001f600x\\\\' * 60_000, "c": {"d": PARTS}},
    ],
)  # fmt: skip
async def test_it_means_the_same(value) -> None:
    for indent in (None, 2):
        raw = json.dumps(value, indent=indent).encode()
        assert await decode_long(raw, TurnTaker()) == value == msgspec.json.decode(raw)


async def test_what_is_no_json_is_refused() -> None:
    for raw in (b"[1, 2", b"[" + b"1, " * 90_000 + b"x]"):
        with pytest.raises(msgspec.DecodeError):
            await decode_long(raw, TurnTaker())


@given(st.text(alphabet='a"\\\u00e9{[', max_size=30), st.integers(1, 9))
async def test_quotes_are_counted_wherever_a_piece_ends(text, size) -> None:
    raw = json.dumps({text: [text, {"b": text}]}, ensure_ascii=False).encode()
    with patch.object(long_json, "_WHOLE", size):
        assert await count_quotes(raw, TurnTaker()) == 2 * 4
        assert await decode_long(raw, TurnTaker()) == json.loads(raw)


async def test_a_large_value_is_emptied() -> None:
    inner = [[number] for number in range(200)]
    value = [{"a": inner}, *range(500)]
    await let_go(value, TurnTaker())
    assert value == inner == []
