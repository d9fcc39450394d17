"""Long JSON means what it does at once."""

import json

import msgspec
import pytest

from gateway.content.long_json import decode_long
from gateway.content.turn_taker import TurnTaker

PARTS = [{"type": "text", "text": f"p{number} \u00e4\n"} for number in range(9_000)]


@pytest.mark.parametrize(
    "value",
    [
        [], {}, "a" * 200_000, [{"role": "user", "content": PARTS}, 1.5, None],
        {"a": PARTS, "b": [1, 2], "c": {"d": PARTS}},
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
