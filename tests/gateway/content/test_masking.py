"""Placeholders."""

import json

import pytest

from gateway.content.masking import Placeholders, mask_texts
from gateway.content.seams import SplitFind
from gateway.content.text_scanner import TextFind


async def test_the_same_value_has_the_same_name() -> None:
    names = Placeholders()
    texts = ["x 1234 y 12-34", "12", "34 z"]
    finds = [TextFind("card", 0, 2, 6, "1234"), TextFind("card", 0, 9, 14, "1234"),
             TextFind("email", 0, 0, 1, "x")]  # fmt: skip
    split = SplitFind([TextFind("card", 1, 0, 2, "1234"), TextFind("card", 2, 0, 2, "1234")])
    masked = await mask_texts(texts, finds, [split], ["card"], names)
    assert masked == {0: "x [card-1] y [card-1]", 1: "[card-1]", 2: "[card-1] z"}
    assert names.name("card", "other") == "[card-2]"


@pytest.mark.parametrize(
    ("item", "number"),
    [
        ({"role": "user", "content": "pay [card-2] or [card-1]"}, 3),
        ({"type": "function_call_output", "output": "[card-7]"}, 8),
        ({"role": "assistant", "content": "[card-2]"}, 1),
        ({"type": "function_call", "arguments": "[card-2]"}, 1),
        ({"role": "user", "content": "[email-2], [card-1234567], card-3"}, 1),
    ],
)
def test_names_of_turns_that_were_stored_masked_are_no_others(item, number) -> None:
    """What a model said repeats its prompt's, which is named anew."""
    names = Placeholders()
    names.reserve({"messages": json.dumps([item]).encode(), "input": b'"[card-9]"'})
    assert names.name("card", "1234") == f"[card-{number}]"
